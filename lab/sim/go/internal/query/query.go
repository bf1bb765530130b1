// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package query is how programs ask the silicon: one line there, lines back, over TCP.
package query

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Port the silicon listens on, on all addresses of the node.
const Port = 6629

// Inner is DCMI's code for anything that went wrong inside.
const Inner = -8005

// NotReady is DCMI's code for a chip that does not answer yet.
const NotReady = -8012

// Reply is the state of the driver and of every chip.
type Reply struct {
	Result   int
	Driver   string
	Firmware string
	Values   map[string]string
	Chips    []Chip
	VNPUs    []Chip // the virtual NPUs of all chips; see silicon.vnpuLines
}

// Chip is one chip's values by name; see silicon.chipLine.
type Chip map[string]string

// Number is a value as a number, 0 if it is none.
func (c Chip) Number(key string) int { number, _ := strconv.Atoi(c[key]); return number }

// Ask asks on behalf of the named program. A silicon that cannot be reached is a driver that does not work.
func Ask(program string) Reply { return parse(Text(program)) }

// Text is the reply as it comes; empty if the silicon cannot be reached.
func Text(program string) string {
	for _, address := range addresses() {
		connection, err := net.DialTimeout("tcp", address, 2*time.Second)
		if err != nil {
			continue
		}
		defer connection.Close()
		fmt.Fprintf(connection, "query %s\n", program)
		text, _ := io.ReadAll(connection)
		return string(text)
	}
	return ""
}

func parse(text string) Reply {
	reply := Reply{Result: Inner, Values: map[string]string{}}
	complete := false
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		key, rest, _ := strings.Cut(lines.Text(), " ")
		switch key {
		case "result":
			reply.Result, _ = strconv.Atoi(rest)
		case "driver":
			reply.Driver = rest
		case "firmware":
			reply.Firmware = rest
		case "chip":
			reply.Chips = append(reply.Chips, fields(rest))
		case "vnpu":
			reply.VNPUs = append(reply.VNPUs, fields(rest))
		case "end":
			complete = true
		default:
			reply.Values[key] = rest
		}
	}
	if !complete {
		return Reply{Result: Inner}
	}
	return reply
}

// fields parses key=value pairs; "~" in values stands for a space.
func fields(line string) Chip {
	chip := Chip{}
	for _, field := range strings.Fields(line) {
		key, value, _ := strings.Cut(field, "=")
		chip[key] = strings.ReplaceAll(value, "~", " ")
	}
	return chip
}

func addresses() []string {
	if address := os.Getenv("NPUSIM_ADDRESS"); address != "" {
		return []string{address}
	}
	port := strconv.Itoa(Port)
	list := []string{net.JoinHostPort("127.0.0.1", port)}
	for _, host := range []string{os.Getenv("HOST_IP"), gateway()} {
		if host != "" {
			list = append(list, net.JoinHostPort(host, port))
		}
	}
	return list
}

func gateway() string {
	content, _ := os.ReadFile("/proc/net/route")
	for _, line := range strings.Split(string(content), "\n") {
		words := strings.Fields(line)
		if len(words) > 2 && words[1] == "00000000" {
			if raw, err := hex.DecodeString(words[2]); err == nil && len(raw) == 4 {
				address := make(net.IP, 4)
				binary.LittleEndian.PutUint32(address, binary.BigEndian.Uint32(raw))
				return address.String()
			}
		}
	}
	return ""
}
