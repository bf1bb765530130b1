// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

package nodefaults

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"

	"npuops/labsim/internal/cluster"
)

// Clusterd collects what the nodes report.
type Clusterd struct {
	api     API
	written map[string]string
}

// NewClusterd makes one. It ends without Volcano's kinds.
func NewClusterd(api API) (*Clusterd, error) {
	if _, err := api.Get("/apis/scheduling.volcano.sh/v1beta1/podgroups"); cluster.IsNotFound(err) {
		return nil, errors.New("volcano not exist, please deploy volcano")
	}
	return &Clusterd{api, map[string]string{}}, nil
}

// Listen takes connections of noded and of jobs, and says nothing to them.
func Listen() error {
	address := net.ParseIP(os.Getenv("POD_IP"))
	if address == nil || address.IsUnspecified() {
		return errors.New("parse to ip failed")
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "8899"))
	if err != nil {
		return err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connection.Close()
		}
	}()
	return nil
}

// Collect writes what has changed since.
func (c *Clusterd) Collect() error {
	found, err := c.api.Get("/api/v1/configmaps?labelSelector=mx-consumer-cim%3Dtrue")
	if err != nil {
		return err
	}
	devices, nodes := map[string]any{}, map[string]any{}
	items, _ := cluster.At(found, "items").([]any)
	for _, item := range items {
		name, namespace := cluster.Text(item, "metadata", "name"), cluster.Text(item, "metadata", "namespace")
		switch {
		case namespace == "kube-system" && strings.HasPrefix(name, deviceInfo):
			keep(devices, name, cluster.Text(item, "data", "DeviceInfoCfg"), "DeviceInfo")
		case namespace == dlNamespace && strings.HasPrefix(name, nodeInfo):
			keep(nodes, name, cluster.Text(item, "data", "NodeInfo"), "NodeInfo")
		}
	}
	return errors.Join(
		c.write(dlNamespace, "cluster-info-device-0", devices),
		c.write(dlNamespace, "cluster-info-node-cm", nodes),
		c.write(dlNamespace, "cluster-info-switch-0", map[string]any{}),
		c.write(clusterNamespace, "statistic-fault-info", map[string]any{}),
	)
}

// keep takes over one report, unless it cannot be read.
func keep(all map[string]any, name, text, key string) {
	var report map[string]any
	if json.Unmarshal([]byte(text), &report) == nil && report[key] != nil {
		all[name] = report[key]
	}
}

func (c *Clusterd) write(namespace, name string, content map[string]any) error {
	text, err := json.Marshal(content)
	if err != nil || c.written[name] == string(text) {
		return err
	}
	if err := write(c.api, namespace, name, cluster.Object{name: string(text)}); err != nil {
		return err
	}
	c.written[name] = string(text)
	return nil
}
