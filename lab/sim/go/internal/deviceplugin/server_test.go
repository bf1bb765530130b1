// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package deviceplugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"npuops/labsim/internal/query"
)

// kubelet is the registration side of one.
type kubelet struct {
	v1beta1.UnimplementedRegistrationServer
	registered chan *v1beta1.RegisterRequest
	server     *grpc.Server
}

func (k *kubelet) Register(_ context.Context, r *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	k.registered <- r
	return &v1beta1.Empty{}, nil
}

func startKubelet(t *testing.T, directory string) *kubelet {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(directory, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{registered: make(chan *v1beta1.RegisterRequest, 10), server: grpc.NewServer()}
	v1beta1.RegisterRegistrationServer(k.server, k)
	go k.server.Serve(listener) //nolint:errcheck // ends with Stop
	t.Cleanup(k.server.Stop)
	return k
}

// silicon answers as one with two chips; reply can be changed.
func silicon(t *testing.T, reply *string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Read(make([]byte, 100)) //nolint:errcheck // any question will do
			fmt.Fprint(connection, *reply)
			connection.Close()
		}
	}()
	t.Setenv("NPUSIM_ADDRESS", listener.Addr().String())
}

const twoChips = "result 0\nchip phy=0 family=910B\nchip phy=1 family=910B\nend\n"

func plugin(t *testing.T) (*Server, v1beta1.DevicePluginClient, *kubelet, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("the plugin serves root's directories only")
	}
	directory := t.TempDir()
	k := startKubelet(t, directory)
	s := NewServer(kinds["910B"], []string{"Ascend910-0", "Ascend910-1"})
	s.common = []string{"/dev/davinci_manager", "/dev/hisi_hdc"}
	stop, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Serve(stop, nil, directory); close(done) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if _, err := os.Stat(s.socket(directory)); err == nil {
			t.Error("the socket is left")
		}
	})
	request := <-k.registered
	if request.ResourceName != "huawei.com/Ascend910" || request.Endpoint != "Ascend910.sock" || request.Version != "v1beta1" {
		t.Errorf("registered as %v", request)
	}
	connection, err := grpc.NewClient("unix://"+s.socket(directory), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return s, v1beta1.NewDevicePluginClient(connection), k, directory
}

func allocate(client v1beta1.DevicePluginClient, ids ...string) (*v1beta1.AllocateResponse, error) {
	return client.Allocate(context.Background(), &v1beta1.AllocateRequest{
		ContainerRequests: []*v1beta1.ContainerAllocateRequest{{DevicesIds: ids}}})
}

func TestAllocate(t *testing.T) {
	reply := twoChips
	silicon(t, &reply)
	_, client, _, _ := plugin(t)

	answer, err := allocate(client, "Ascend910-1", "Ascend910-0")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, device := range answer.ContainerResponses[0].Devices {
		paths = append(paths, device.HostPath+":"+device.Permissions)
	}
	want := "/dev/davinci_manager:rw /dev/hisi_hdc:rw /dev/davinci0:rw /dev/davinci1:rw"
	if got := strings.Join(paths, " "); got != want {
		t.Error(got)
	}
	fails := func(err error, words string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "code = Unknown desc = "+words) {
			t.Error(err)
		}
	}
	_, err = allocate(client, "nosuch-0")
	fails(err, "plugin doesn't have device nosuch-0")
	_, err = client.GetPreferredAllocation(context.Background(), &v1beta1.PreferredAllocationRequest{})
	fails(err, "not support")
	reply = "result -8005\nend\n"
	_, err = allocate(client, "Ascend910-0")
	fails(err, "get card list failed, error code: -8005")
}

func TestSharedChips(t *testing.T) {
	chip := query.Chip{"phy": "2", "family": "310P"}
	if got := strings.Join(kinds["310P"].IDs(chip, 3), " "); got != "Ascend310P-2-0 Ascend310P-2-1 Ascend310P-2-2" {
		t.Error(got)
	}
	for _, kind := range []string{"910B", "310P"} {
		shares := map[string]uint{"910B": 3, "310P": 1}[kind]
		if got := kinds[kind].IDs(chip, shares); len(got) != 1 || number(got[0]) != 2 {
			t.Errorf("%s: %v", kind, got)
		}
	}
	s := NewServer(kinds["310P"], kinds["310P"].IDs(chip, 3))
	s.common = nil
	for _, id := range s.ids {
		devices := s.answer([]string{id}).Devices
		if len(devices) != 1 || devices[0].HostPath != "/dev/davinci2" {
			t.Errorf("%s: %v", id, devices)
		}
	}
	health := NewHealth(kinds["310P"], s.ids)
	faulty := query.Reply{Chips: []query.Chip{{"phy": "2", "code": "80E01801"}}}
	health.Look(faulty)
	for id, healthy := range health.Look(faulty) {
		if healthy {
			t.Errorf("%s: all devices of a chip are as healthy as the chip", id)
		}
	}
}

func TestAllocateForAscendsRuntime(t *testing.T) {
	reply := twoChips
	silicon(t, &reply)
	t.Setenv("ASCEND_DOCKER_RUNTIME", "True")
	_, client, _, _ := plugin(t)
	answer, err := allocate(client, "Ascend910-0", "Ascend910-1")
	if err != nil {
		t.Fatal(err)
	}
	container := answer.ContainerResponses[0]
	if len(container.Devices) != 0 || container.Envs["ASCEND_VISIBLE_DEVICES"] != "0,1" || len(container.Envs) != 2 {
		t.Error(container)
	}
}

func TestRegistersAgainOnlyWhenTheStreamEnds(t *testing.T) {
	s, client, k, directory := plugin(t)
	context1, cancel := context.WithCancel(context.Background())
	stream, err := client.ListAndWatch(context1, &v1beta1.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil || len(list.Devices) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if !s.SetHealth(map[string]bool{"Ascend910-0": true, "Ascend910-1": false}) {
		t.Error("no change")
	}
	if list, err = stream.Recv(); err != nil || list.Devices[1].Health != v1beta1.Unhealthy {
		t.Fatalf("%v, %v", list, err)
	}
	k.server.Stop() // its socket goes; the stream lives
	k = startKubelet(t, directory)
	select {
	case <-k.registered:
		t.Error("registered again because of a new kubelet.sock")
	case <-time.After(lookEvery + time.Second):
	}
	cancel()
	select {
	case <-k.registered:
	case <-time.After(2 * lookEvery):
		t.Error("not registered again after the stream's end")
	}
}

func TestHealth(t *testing.T) {
	look := func(h *Health, result int, code string, own int) bool {
		chip := query.Chip{"phy": "0", "code": code, "result": fmt.Sprint(own)}
		return h.Look(query.Reply{Result: result, Chips: []query.Chip{chip}})[h.ids[0]]
	}
	events := NewHealth(kinds["910B"], []string{"Ascend910-0"})
	if look(events, 0, "80E01801", 0) {
		t.Error("a fault code on a 910 counts at once")
	}
	if look(events, 0, "", 0) || !look(events, 0, "", 0) {
		t.Error("healthy again at the second look")
	}
	if !look(events, 0, "81078603", 0) || !look(events, 0, "81078603", 0) {
		t.Error("a code that is not handled does not count")
	}
	polled := NewHealth(kinds["310P"], []string{"Ascend310P-0"})
	if !look(polled, 0, "80E01801", 0) || look(polled, 0, "80E01801", 0) {
		t.Error("a fault code on a 310P counts at the second look")
	}
	wedged := NewHealth(kinds["910B"], []string{"Ascend910-0"})
	for range 5 {
		if !look(wedged, query.Inner, "", 0) {
			t.Error("a wedged chip stays healthy")
		}
	}
	if !look(wedged, 0, "", query.NotReady) || look(wedged, 0, "", query.NotReady) {
		t.Error("not ready counts at the second look")
	}
}
