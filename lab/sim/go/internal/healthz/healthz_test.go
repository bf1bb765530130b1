// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package healthz

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func ask(h http.Handler, method, path string) int {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
	return answer.Code
}

func TestAnswers(t *testing.T) {
	h := &handler{tokens: burst, last: time.Now()}
	for _, test := range []struct {
		method, path string
		want         int
	}{{"GET", "/", 200}, {"POST", "/", 405}, {"GET", "/healthz", 404}, {"GET", "/", 200}, {"GET", "/", 200}, {"GET", "/", 429}} {
		if got := ask(h, test.method, test.path); got != test.want {
			t.Errorf("%s %s: %d, not %d", test.method, test.path, got, test.want)
		}
	}
	h.last = h.last.Add(-2 * time.Second)
	if got := ask(h, "GET", "/"); got != 200 {
		t.Errorf("after a while: %d", got)
	}
}

func TestOnlyWhereAsked(t *testing.T) {
	for _, c := range []*Config{nil, {}} {
		if err := c.Serve(); err != nil {
			t.Error(err)
		}
	}
	for _, port := range []string{"", "80", "none"} {
		if (&Config{enabled: true, port: port}).Serve() == nil {
			t.Errorf("port %q must be refused", port)
		}
	}
}
