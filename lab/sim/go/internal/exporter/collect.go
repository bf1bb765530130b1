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
	"npuops/labsim/internal/release"
)

const program = "npu-exporter"

// listEvery is how often the list of chips is read. Between two of these, what is asked are the chips of the list.
const listEvery = time.Minute

// Collector looks at chips and containers from time to time; a scrape gets what it saw last.
type Collector struct {
	containers *Containers
	lock       sync.Mutex
	list       []query.Chip // all chips, as they were when they were listed
	listed     time.Time
	reply      query.Reply // what the driver said last
	owners     map[int]Owner
	at         time.Time
	cards      int // what 26.1 tells of the node, however the driver is
	driver     string
	started    time.Time
}

// NewCollector waits up to limit for chips. A driver that answers with an error is given up at once.
func NewCollector(containers *Containers, limit time.Duration) (*Collector, error) {
	for waited := time.Duration(0); ; waited += 10 * time.Second {
		reply := query.Ask(program)
		if reply.Result != 0 {
			return nil, fmt.Errorf("get card list failed, error code: %d", reply.Result)
		}
		if len(reply.Chips) > 0 {
			c := &Collector{containers: containers, driver: reply.Driver, started: time.Now()}
			c.take(reply, nil, time.Now())
			return c, nil
		}
		if waited >= limit {
			return nil, errors.New("no cards found")
		}
		time.Sleep(10 * time.Second)
	}
}

// Watch looks every period. It does not return.
func (c *Collector) Watch(period time.Duration) {
	for ; ; time.Sleep(period) {
		reply := query.Ask(program)
		owners, err := c.containers.Owners()
		if err != nil {
			logging.Error("failed to get container info: %v", err)
		}
		c.take(reply, owners, time.Now())
	}
}

// take keeps what was seen. The list of a driver that does not answer is empty.
func (c *Collector) take(reply query.Reply, owners map[int]Owner, now time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.reply, c.owners, c.at = reply, owners, now
	if reply.Result == 0 {
		c.cards = cards(reply.Chips)
	}
	if now.Sub(c.listed) >= listEvery {
		c.list, c.listed = reply.Chips, now
	}
}

// Text is the answer to a scrape.
func (c *Collector) Text() string {
	c.lock.Lock()
	defer c.lock.Unlock()
	text := Text(c.list, c.reply, c.owners, c.at)
	if release.Is73() {
		return text
	}
	return text + Base(c.cards, c.driver, c.started)
}
