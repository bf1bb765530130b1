// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"time"

	"npuops/labsim/internal/faults"
	"npuops/labsim/internal/hardware"
	"npuops/labsim/internal/query"
)

// Health values of DCMI.
var health = map[string]int{"OK": 0, "Warning": 1, "Alarm": 2, "Critical": 3}

// ServeQueries answers the driver's libraries. It does not return.
func (s *Silicon) ServeQueries(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go s.answer(connection)
	}
}

func (s *Silicon) answer(connection net.Conn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(connection).ReadString('\n')
	program, ok := strings.CutPrefix(strings.TrimSpace(line), "query ")
	if err != nil || !ok {
		return
	}
	connection.SetDeadline(time.Time{})
	for program == "npu-smi" && s.now().Has("smi-hangs") {
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(s.now().Seconds("slow-calls", 4))
	connection.SetDeadline(time.Now().Add(10 * time.Second))
	connection.Write([]byte(s.Reply(program)))
}

// now is broken for whoever does not hold the mutex.
func (s *Silicon) now() faults.Set {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.broken()
}

// Reply is what the libraries get to know, in lines.
func (s *Silicon) Reply(program string) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	broken := s.broken()
	var out strings.Builder
	fmt.Fprintf(&out, "result %d\n", s.result(broken))
	if program == "npu-smi" {
		if broken.Has("smi-fails") {
			fmt.Fprintf(&out, "smi_fails %d\n", broken.Number("smi-fails", 0, -8020))
		}
		if broken.Has("smi-garbage") {
			fmt.Fprintf(&out, "smi_garbage 1\n")
		}
	}
	fmt.Fprintf(&out, "driver %s\nfirmware %s\n", s.version(broken), Firmware)
	hidden := 0
	if broken.Has("fewer-chips") {
		hidden = broken.Number("fewer-chips", 0, 1)
	}
	for i, chip := range s.chips {
		if s.result(broken) == 0 && !broken.Hits("chip-lost", chip.Phy) && i < len(s.chips)-hidden {
			out.WriteString(chipLine(chip, broken, s.flash[chip.Phy].Running, s.portOf(chip, broken)))
		}
	}
	if s.result(broken) == 0 {
		out.WriteString(s.vnpuLines(broken))
	}
	out.WriteString("end\n")
	return out.String()
}

func (s *Silicon) result(broken faults.Set) int {
	if _, there := s.wantedDevices(broken)["davinci_manager"]; !there || s.dead() || broken.Has("wedge") {
		return query.Inner
	}
	return 0
}

// chipLine is `chip` and all values of one; a space in a value is written "~".
func chipLine(c hardware.Chip, broken faults.Set, firmware string, p port) string {
	state, code, result := "OK", "", 0
	if broken.Hits("alarm", c.Phy) {
		state, code = broken.Word("alarm", 2, "Alarm"), broken.Word("alarm", 1, "80E01801")
	}
	if broken.Hits("not-ready", c.Phy) {
		result = query.NotReady
	}
	used := 3161 + 7*c.Phy
	if c.HBM == 0 {
		used = 1263 + 11*c.Phy
	}
	values := []struct {
		key   string
		value any
	}{
		{"phy", c.Phy}, {"card", c.Card}, {"chip", c.Index}, {"bus", c.Function.Bus()},
		{"family", c.Family}, {"name", c.Name}, {"product", c.Product}, {"board", c.Board},
		{"device", bare(c.Function.Device)}, {"subvendor", bare(c.Function.SubsystemVendor)},
		{"subdevice", bare(c.Function.SubsystemDevice)}, {"serial", fmt.Sprintf("1025C90%05d", 48700+c.Phy-c.Index)},
		{"result", result}, {"health", health[state]}, {"code", code},
		{"used", used}, {"hbm", c.HBM}, {"ddr", c.DDR[c.Index%2]}, {"cores", c.AICores}, {"ctrlcpu", 6},
		{"power", 936 + 3*c.Phy}, {"temp", 38 + c.Phy%5}, {"mcu_temp", 36 + c.Card%4},
		{"port", p.link}, {"weak", p.weak}, {"ip", p.address}, {"firmware", firmware},
	}
	var line strings.Builder
	line.WriteString("chip")
	for _, v := range values {
		fmt.Fprintf(&line, " %s=%s", v.key, strings.ReplaceAll(fmt.Sprint(v.value), " ", "~"))
	}
	return line.String() + "\n"
}

// bare is a PCI ID without 0x, in capitals.
func bare(id string) string { return strings.ToUpper(strings.TrimPrefix(id, "0x")) }
