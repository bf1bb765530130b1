// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package exporter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Containers asks the container runtime which container has which chip.
type Containers struct{ Endpoint string }

// spec is the part of an OCI runtime spec that tells.
type spec struct {
	Process struct{ Env []string }
	Linux   struct {
		Resources struct {
			Devices []struct {
				Allow        bool
				Type         string
				Major, Minor *int64
			}
		}
	}
}

// Owners are the running containers by the physical IDs of the chips they have.
func (c *Containers) Owners() (map[int]Owner, error) {
	connection, err := grpc.NewClient("unix://"+strings.TrimPrefix(c.Endpoint, "unix://"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client := runtime.NewRuntimeServiceClient(connection)
	list, err := client.ListContainers(limit, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
		State: &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		return nil, err
	}
	majors, owners := ownMajors(), map[int]Owner{}
	for _, container := range list.Containers {
		status, err := client.ContainerStatus(limit, &runtime.ContainerStatusRequest{ContainerId: container.Id, Verbose: true})
		if err != nil {
			continue // it is gone
		}
		var info struct{ RuntimeSpec spec }
		if err := json.Unmarshal([]byte(status.Info["info"]), &info); err != nil {
			return owners, fmt.Errorf("container %s: %w", container.Id, err)
		}
		for _, chip := range info.RuntimeSpec.chips(majors) {
			owners[chip] = Owner{container.Labels["io.kubernetes.pod.namespace"], container.Labels["io.kubernetes.pod.name"],
				container.Labels["io.kubernetes.container.name"], container.Id}
		}
	}
	return owners, nil
}

// chips: the last environment entry that contains ASCEND_VISIBLE_DEVICES decides, whatever it says; without one, the
// device rules do.
func (s spec) chips(majors []int64) []int {
	for i := len(s.Process.Env) - 1; i >= 0; i-- {
		if strings.Contains(s.Process.Env[i], "ASCEND_VISIBLE_DEVICES") {
			_, value, _ := strings.Cut(s.Process.Env[i], "=")
			return visible(value)
		}
	}
	var chips []int
	for _, rule := range s.Linux.Resources.Devices {
		if rule.Allow && rule.Type == "c" && rule.Major != nil && rule.Minor != nil && slices.Contains(majors, *rule.Major) {
			chips = append(chips, int(*rule.Minor))
		}
	}
	return chips
}

// visible reads 0,1 or 0-3 or Ascend910-0,Ascend910-1; anything else, like void, is no chip.
func visible(value string) []int {
	var chips []int
	for _, word := range strings.Split(value, ",") {
		first, last, isRange := strings.Cut(word, "-")
		if isRange && strings.HasPrefix(first, "Ascend") {
			first, isRange = last, false
		}
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for chip := from; chip <= to; chip++ {
			chips = append(chips, chip)
		}
	}
	return chips
}

// chipMajors are those of davinciN: the lines of /proc/devices that upstream looks for.
func chipMajors(devices string) []int64 {
	var majors []int64
	for _, match := range regexp.MustCompile(`(?m)^([0-9]{1,3})\sv?devdrv-cdev$`).FindAllStringSubmatch(devices, -1) {
		if major, err := strconv.ParseInt(match[1], 10, 64); err == nil {
			majors = append(majors, major)
		}
	}
	return majors
}

// ownMajors are read once, as upstream does: before the driver is loaded there is nothing to read.
var ownMajors = sync.OnceValue(func() []int64 {
	content, _ := os.ReadFile("/proc/devices")
	return chipMajors(string(content))
})
