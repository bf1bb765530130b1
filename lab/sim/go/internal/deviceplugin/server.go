// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"npuops/labsim/internal/logging"
)

// Devices every container gets, those of them that were there when the plugin started.
var common = []string{"/dev/davinci_manager", "/dev/hisi_hdc", "/dev/devmm_svm", "/dev/dvpp_cmdlist"}

const failedSends = 5

// Server is the plugin as the kubelet sees it.
type Server struct {
	v1beta1.UnimplementedDevicePluginServer
	Kind    Kind
	runtime bool // the container runtime is Ascend's: it does the work, the answer names chips only
	common  []string

	lock    sync.Mutex // held while health changes, until the kubelet was told, and while devices are handed out
	changed chan struct{}
	ended   chan struct{} // a ListAndWatch stream is over: register again

	cached  sync.Mutex // of what follows
	ids     []string
	healthy map[string]bool
	watched bool
}

// NewServer makes the server of a node with these devices, all healthy.
func NewServer(kind Kind, ids []string) *Server {
	s := &Server{Kind: kind, runtime: os.Getenv("ASCEND_DOCKER_RUNTIME") == "True",
		changed: make(chan struct{}), ended: make(chan struct{}, 1), ids: ids, healthy: map[string]bool{}}
	for _, path := range common {
		if _, err := os.Stat(path); err == nil {
			s.common = append(s.common, path)
		}
	}
	for _, id := range ids {
		s.healthy[id] = true
	}
	return s
}

// SetHealth changes devices' health and tells the kubelet. If it does not read, this blocks, lock and all.
func (s *Server) SetHealth(healthy map[string]bool) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.cached.Lock()
	different, watched := !maps.Equal(s.healthy, healthy), s.watched
	s.healthy = healthy
	s.cached.Unlock()
	if different && watched {
		s.changed <- struct{}{}
	}
	return different
}

// Unhealthy are the names of the devices that are.
func (s *Server) Unhealthy() []string {
	s.cached.Lock()
	defer s.cached.Unlock()
	return slices.DeleteFunc(slices.Clone(s.ids), func(id string) bool { return s.healthy[id] })
}

// GetDevicePluginOptions has none.
func (s *Server) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

// GetPreferredAllocation is not there.
func (s *Server) GetPreferredAllocation(context.Context, *v1beta1.PreferredAllocationRequest) (
	*v1beta1.PreferredAllocationResponse, error) {
	return nil, errors.New("not support")
}

// PreStartContainer has nothing to do.
func (s *Server) PreStartContainer(context.Context, *v1beta1.PreStartContainerRequest) (
	*v1beta1.PreStartContainerResponse, error) {
	return &v1beta1.PreStartContainerResponse{}, nil
}

// ListAndWatch sends at once, on changes, and every hour.
func (s *Server) ListAndWatch(_ *v1beta1.Empty, stream grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	logging.Info("receive ListAndWatch from kubelet, deviceType=%s", s.Kind.Type)
	s.setWatched(true)
	defer s.setWatched(false)
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	failures := 0
	for {
		if err := stream.Send(s.list()); err != nil {
			logging.Error("send to kubelet failed, error is %v", err)
			if failures++; failures >= failedSends {
				s.end()
				return nil
			}
		} else {
			failures = 0
		}
		select {
		case <-stream.Context().Done():
			logging.Info("grpc stream closed, deviceType=%s", s.Kind.Type)
			s.end()
			return nil
		case <-s.changed:
		case <-hourly.C:
		}
	}
}

func (s *Server) setWatched(watched bool) {
	s.cached.Lock()
	defer s.cached.Unlock()
	s.watched = watched
}

func (s *Server) end() {
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

func (s *Server) list() *v1beta1.ListAndWatchResponse {
	s.cached.Lock()
	defer s.cached.Unlock()
	response := &v1beta1.ListAndWatchResponse{}
	for _, id := range s.ids {
		health := v1beta1.Unhealthy
		if s.healthy[id] {
			health = v1beta1.Healthy
		}
		response.Devices = append(response.Devices, &v1beta1.Device{ID: id, Health: health})
	}
	return response
}

// Allocate repeats the whole discovery, then names device nodes, or chips for Ascend's own runtime.
func (s *Server) Allocate(_ context.Context, request *v1beta1.AllocateRequest) (*v1beta1.AllocateResponse, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, container := range request.ContainerRequests {
		for _, id := range container.DevicesIds {
			if !slices.Contains(s.ids, id) {
				return nil, fmt.Errorf("plugin doesn't have device %s", id)
			}
			if isVirtual(id) && len(container.DevicesIds) > 1 {
				return nil, fmt.Errorf("request more than 1 virtual device, current is %d", len(container.DevicesIds))
			}
		}
	}
	if _, err := discover(); err != nil {
		logging.Error("get all npus info failed: %v", err)
		return nil, err
	}
	response := &v1beta1.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, s.answer(container.DevicesIds))
	}
	logging.Info("allocate %v", request.ContainerRequests)
	return response, nil
}

func (s *Server) answer(ids []string) *v1beta1.ContainerAllocateResponse {
	numbers := make([]int, 0, len(ids))
	for _, id := range ids {
		numbers = append(numbers, nodeNumber(id))
	}
	slices.Sort(numbers)
	virtual := len(ids) > 0 && isVirtual(ids[0])
	if s.runtime {
		words := make([]string, 0, len(numbers))
		for _, n := range numbers {
			words = append(words, strconv.Itoa(n))
		}
		options := ""
		if virtual {
			options = "VIRTUAL"
		}
		return &v1beta1.ContainerAllocateResponse{Envs: map[string]string{
			"ASCEND_VISIBLE_DEVICES": strings.Join(words, ","), "ASCEND_RUNTIME_OPTIONS": options}}
	}
	response := &v1beta1.ContainerAllocateResponse{}
	add := func(host, container string) {
		spec := &v1beta1.DeviceSpec{HostPath: host, ContainerPath: container, Permissions: "rw"}
		response.Devices = append(response.Devices, spec)
	}
	for _, path := range s.common {
		add(path, path)
	}
	for _, n := range numbers {
		container := "/dev/davinci" + strconv.Itoa(n)
		host := container
		if virtual {
			host = "/dev/vdavinci" + strconv.Itoa(n)
		}
		add(host, container)
	}
	return response
}
