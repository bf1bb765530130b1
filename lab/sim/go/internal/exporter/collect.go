// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package exporter

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"npuops/labsim/internal/logging"
	"npuops/labsim/internal/query"
)

const program = "npu-exporter"

// Collector looks at chips and containers from time to time; a scrape gets what it saw last.
type Collector struct {
	containers *Containers
	lock       sync.Mutex
	chips      []query.Chip
	up         bool
	owners     map[int]Owner
	at         time.Time
}

// NewCollector waits up to limit for chips. A driver that answers with an error is given up at once.
func NewCollector(containers *Containers, limit time.Duration) (*Collector, error) {
	for waited := time.Duration(0); ; waited += 10 * time.Second {
		reply := query.Ask(program)
		if reply.Result != 0 {
			return nil, fmt.Errorf("get card list failed, error code: %d", reply.Result)
		}
		if len(reply.Chips) > 0 {
			return &Collector{containers: containers, chips: reply.Chips, up: true, at: time.Now()}, nil
		}
		if waited >= limit {
			return nil, errors.New("no cards found")
		}
		time.Sleep(10 * time.Second)
	}
}

// Watch looks every period. It does not return. Chips that a wedged driver does not list stay in the list.
func (c *Collector) Watch(period time.Duration) {
	for ; ; time.Sleep(period) {
		reply := query.Ask(program)
		owners, err := c.containers.Owners()
		if err != nil {
			logging.Error("failed to get container info: %v", err)
		}
		c.lock.Lock()
		c.up, c.owners, c.at = reply.Result == 0, owners, time.Now()
		if c.up && len(reply.Chips) > 0 {
			c.chips = reply.Chips
		}
		c.lock.Unlock()
	}
}

// Text is the answer to a scrape.
func (c *Collector) Text() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	return Text(c.chips, c.up, c.owners, c.at)
}
