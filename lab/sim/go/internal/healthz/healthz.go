// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package healthz answers liveness probes as the components do from 26.0 on.
package healthz

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Config is what the flags say.
type Config struct {
	enabled                bool
	port, certificate, key string
}

// Flags registers upstream's flags.
func Flags() *Config {
	var c Config
	flag.BoolVar(&c.enabled, "enable-healthz", false, "answer liveness probes")
	flag.StringVar(&c.port, "healthz-address", "11251", "port, 1025 to 65535")
	flag.StringVar(&c.certificate, "tls-cert-file", "", "TLS is not simulated")
	flag.StringVar(&c.key, "tls-private-key-file", "", "TLS is not simulated")
	return &c
}

// Serve answers probes in the background. On a nil Config it does nothing.
func (c *Config) Serve() error {
	if c == nil || !c.enabled {
		return nil
	}
	if port, err := strconv.Atoi(c.port); err != nil || port < 1025 || port > 65535 {
		return fmt.Errorf("invalid port in healthzAddress: %s", c.port)
	}
	if c.certificate != "" || c.key != "" {
		return fmt.Errorf("TLS is not simulated")
	}
	listener, err := net.Listen("tcp", ":"+c.port)
	if err != nil {
		return fmt.Errorf("healthz server failed to listen on %s: %w", c.port, err)
	}
	go func() { _ = http.Serve(listener, &handler{tokens: burst, last: time.Now()}) }()
	return nil
}

// Of all who ask, this many at once and one each second.
const burst = 5

type handler struct {
	lock   sync.Mutex
	tokens float64
	last   time.Time
}

func (h *handler) allow() bool {
	h.lock.Lock()
	defer h.lock.Unlock()
	now := time.Now()
	h.tokens = min(burst, h.tokens+now.Sub(h.last).Seconds())
	h.last = now
	if h.tokens < 1 {
		return false
	}
	h.tokens--
	return true
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case !h.allow():
		w.WriteHeader(http.StatusTooManyRequests)
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.URL.Path != "/":
		w.WriteHeader(http.StatusNotFound)
	default:
		fmt.Fprint(w, "ok")
	}
}
