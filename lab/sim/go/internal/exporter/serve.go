// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package exporter

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits are upstream's: whoever goes beyond them gets 503.
type Limits struct {
	Concurrency       int
	Requests, Seconds int // of one address
	Connections       int
	AddressConns      int
}

// Serve answers scrapes at address. It returns only with an error.
func Serve(address string, limits Limits, text func() string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprint(w, text())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "NPU-Exporter: see /metrics\n") })
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: limit(mux, limits), MaxHeaderBytes: 1024,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	return server.Serve(&limitedListener{Listener: listener, limits: limits, open: map[string]int{}})
}

func limit(inner http.Handler, limits Limits) http.Handler {
	running := make(chan struct{}, limits.Concurrency)
	var lock sync.Mutex
	seen := map[string][]time.Time{}
	allowed := func(host string) bool {
		lock.Lock()
		defer lock.Unlock()
		now := time.Now()
		var recent []time.Time
		for _, at := range seen[host] {
			if now.Sub(at) < time.Duration(limits.Seconds)*time.Second {
				recent = append(recent, at)
			}
		}
		seen[host] = append(recent, now)
		return len(recent) < limits.Requests
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		if !allowed(host) {
			http.Error(w, "503 too busy", http.StatusServiceUnavailable)
			return
		}
		if r.Method != http.MethodGet {
			http.NotFound(w, r)
			return
		}
		select {
		case running <- struct{}{}:
			defer func() { <-running }()
			inner.ServeHTTP(w, r)
		default:
			http.Error(w, "503 too busy", http.StatusServiceUnavailable)
		}
	})
}

// limitedListener closes connections beyond the limits.
type limitedListener struct {
	net.Listener
	limits Limits
	lock   sync.Mutex
	open   map[string]int
	total  int
}

func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
		if l.take(host) {
			return &countedConn{Conn: connection, free: sync.OnceFunc(func() { l.give(host) })}, nil
		}
		connection.Close()
	}
}

func (l *limitedListener) take(host string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.total >= l.limits.Connections || l.open[host] >= l.limits.AddressConns {
		return false
	}
	l.total++
	l.open[host]++
	return true
}

func (l *limitedListener) give(host string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.total--
	if l.open[host]--; l.open[host] == 0 {
		delete(l.open, host)
	}
}

type countedConn struct {
	net.Conn
	free func()
}

func (c *countedConn) Close() error {
	c.free()
	return c.Conn.Close()
}
