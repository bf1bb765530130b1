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
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"npuops/labsim/internal/logging"
)

// When something is looked at again, as measured.
const (
	firstRetry = 10 * time.Second
	nextRetry  = 5 * time.Second
	lookEvery  = 5 * time.Second
)

// Serve registers with the kubelet and does so again when the kubelet's stream has ended or on SIGHUP; nothing else,
// not even a new kubelet.sock, makes it register again. It returns when stop is done, its socket removed.
func (s *Server) Serve(stop context.Context, hangup <-chan os.Signal, directory string) {
	var server *grpc.Server
	end := func() {
		if server != nil {
			server.Stop()
			server = nil
		}
		os.Remove(s.socket(directory))
	}
	defer end()
	restart, retry := true, firstRetry
	for {
		wait := lookEvery
		if restart {
			end()
			var err error
			if server, err = s.start(directory); err == nil {
				err = s.register(directory)
			}
			if err == nil {
				logging.Info("register %s to kubelet success.", s.Kind.Type)
				restart, retry = false, firstRetry
			} else {
				logging.Error("Could not contact Kubelet for %s, retrying: %v", s.Kind.Type, err)
				end()
				wait, retry = retry, nextRetry
			}
		}
		select {
		case <-stop.Done():
			return
		case <-hangup:
			restart = true
			continue
		case <-time.After(wait):
		}
		select {
		case <-s.ended:
			restart = true
		default:
		}
	}
}

func (s *Server) socket(directory string) string {
	return filepath.Join(directory, s.Kind.Type+".sock")
}

func (s *Server) start(directory string) (*grpc.Server, error) {
	if err := safe(directory); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", s.socket(directory))
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(s.socket(directory), 0o600); err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, s)
	go server.Serve(listener) //nolint:errcheck // ends with Stop
	select {
	case <-s.ended: // of the server before
	default:
	}
	return server, nil
}

func (s *Server) register(directory string) error {
	kubelet := filepath.Join(directory, "kubelet.sock")
	if err := safe(kubelet); err != nil {
		return err
	}
	connection, err := grpc.NewClient("unix://"+kubelet, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = v1beta1.NewRegistrationClient(connection).Register(limit, &v1beta1.RegisterRequest{
		Version: v1beta1.Version, Endpoint: s.Kind.Type + ".sock", ResourceName: s.Kind.Resource})
	return err
}

// safe checks that the path has no symbolic link in it and that it belongs to root.
func safe(path string) error {
	path = filepath.Clean(path)
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if resolved != path {
		return fmt.Errorf("%s: a symbolic link is on the way", path)
	}
	stat, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if owner := stat.Sys().(*syscall.Stat_t); owner.Uid != 0 || owner.Gid != 0 {
		return fmt.Errorf("%s: owner is %d:%d, not root", path, owner.Uid, owner.Gid)
	}
	return nil
}
