// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package silicon

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"npuops/labsim/internal/faults"
)

// Device nodes that all chips share, and the majors they had on real hosts. Majors are dynamic: nobody may know them.
var shared = []string{"davinci_manager", "devmm_svm", "hisi_hdc", "dvpp_cmdlist"}
var likely = []int{237, 238, 236, 235, 234} // davinciN, then shared

// ownerAfter is when Huawei's init script hands a new node from root to HwHiAiUser.
const ownerAfter = time.Second

// showDevices makes the device nodes that should be there and removes those that should not.
func (s *Silicon) showDevices(broken faults.Set) {
	wanted := s.wantedDevices(broken)
	old, _ := filepath.Glob(filepath.Join(s.dev, "davinci[0-9]*"))
	virtual, _ := filepath.Glob(filepath.Join(s.dev, "vdavinci[0-9]*"))
	old = append(old, virtual...)
	for _, name := range shared {
		old = append(old, filepath.Join(s.dev, name))
	}
	for _, path := range old {
		if _, keep := wanted[filepath.Base(path)]; !keep {
			os.Remove(path)
		}
	}
	for name, number := range wanted {
		path := filepath.Join(s.dev, name)
		err := syscall.Mknod(path, syscall.S_IFCHR|0o600, number)
		if err != nil && err != syscall.EEXIST {
			log.Printf("%s: %v", path, err)
		}
		handOver(path)
	}
}

func (s *Silicon) wantedDevices(broken faults.Set) map[string]int {
	wanted := map[string]int{}
	if s.state.Up.IsZero() || time.Since(s.state.Up) < s.devicesAfter(broken) {
		return wanted
	}
	numbers := majors()
	for i, name := range shared {
		wanted[name] = numbers[i+1] << 8
	}
	for _, chip := range s.chips {
		if !s.dead() && !broken.Hits("no-dev-node", chip.Phy) {
			wanted["davinci"+strconv.Itoa(chip.Phy)] = numbers[0]<<8 | chip.Phy
		}
	}
	if !s.dead() {
		for name, minor := range s.vnpuDevices() {
			wanted[name] = numbers[len(shared)+1]<<8 | minor
		}
	}
	return wanted
}

// devicesAfter is the time from the driver's last module to its device nodes.
func (s *Silicon) devicesAfter(broken faults.Set) time.Duration {
	if broken.Has("slow-devices") {
		return broken.Seconds("slow-devices", 30)
	}
	return s.delay
}

// numbersOf is /proc/devices with the driver's lines: the major of davinciN is devdrv-cdev's. The names of the others are made up.
func numbersOf(kernel string, numbers []int) string {
	var own strings.Builder
	for i, name := range slices.Concat([]string{"devdrv-cdev"}, shared, []string{"vdavinci"}) {
		fmt.Fprintf(&own, "%3d %s\n", numbers[i], name)
	}
	characters, blocks, _ := strings.Cut(kernel, "\n\n")
	return strings.TrimSuffix(characters, "\n") + "\n" + own.String() + "\n" + blocks
}

// showNumbers writes what is bound over /proc/devices. Programs may read it at any time, so it is never empty.
func (s *Silicon) showNumbers() {
	content, err := os.ReadFile(filepath.Join(s.run, "devices-of-kernel"))
	if err != nil {
		return
	}
	text := string(content)
	if !s.state.Up.IsZero() {
		text = numbersOf(text, majors())
	}
	path := filepath.Join(s.run, "devices")
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o444)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Truncate(int64(len(text))), file.Close())
	}
	if err != nil {
		log.Print(err)
	}
}

// handOver does what host_sys_init.sh does some time after the nodes are there.
func handOver(path string) {
	stat, err := os.Stat(path)
	if err != nil || stat.Mode().Perm() != 0o600 || time.Since(stat.ModTime()) < ownerAfter {
		return
	}
	owner, err := user.Lookup("HwHiAiUser")
	if err != nil {
		return
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	mode := os.FileMode(0o660)
	if info, _ := os.ReadFile("/etc/ascend_install.info"); strings.Contains(string(info), "Driver_Install_For_All=yes") {
		mode = 0o666
	}
	if err := os.Chown(path, uid, gid); err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		log.Print(err)
	}
}

// majors are numbers no driver of this machine has, so that open() ends in ENXIO: davinciN, then shared, then vdavinciN.
var majors = sync.OnceValue(func() []int {
	taken := map[int]bool{}
	file, err := os.Open(filepath.Join(Run, "devices-of-kernel"))
	if err != nil {
		file, err = os.Open("/proc/devices")
	}
	if err == nil {
		defer file.Close()
		lines := bufio.NewScanner(file)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "Block") {
			if number, err := strconv.Atoi(strings.Fields(lines.Text() + " -")[0]); err == nil {
				taken[number] = true
			}
		}
	}
	candidates := slices.Clone(likely)
	for number := 233; number > 200; number-- {
		candidates = append(candidates, number)
	}
	var free []int
	for _, number := range candidates {
		if !taken[number] {
			free = append(free, number)
		}
	}
	return free[:len(shared)+2]
})
