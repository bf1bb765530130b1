// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package operator does for AscendJobs of PyTorch what MindCluster's ascend-operator does: Service and pods with their ranks, the
// rank table, the job's conditions. It asks the API server once a second instead of watching.
package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"npuops/labsim/internal/cluster"
	"npuops/labsim/internal/logging"
)

// API is what it needs of the cluster.
type API interface {
	Get(path string) (cluster.Object, error)
	Create(path string, object cluster.Object) error
	Update(path string, object cluster.Object) error
}

const (
	jobs     = "/apis/mindxdl.gitee.com/v1/ascendjobs"
	interval = time.Second
)

// Upstream waits so long for a kind that the cluster does not have, and ends.
var patience = 2 * time.Minute

// Operator is the controller.
type Operator struct {
	api  API
	gang bool
}

// New makes one. gang: Volcano schedules all pods of a job together.
func New(api API, gang bool) *Operator { return &Operator{api, gang} }

// Run reconciles all jobs until stop says so, or a kind is missing.
func (o *Operator) Run(stop <-chan os.Signal) error {
	if err := o.checkPodGroups(); err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for {
		err := o.checkKinds()
		if err == nil {
			err = o.ReconcileAll()
			deadline = time.Now().Add(patience)
		} else if time.Now().After(deadline) {
			return err
		}
		if err != nil {
			logging.Error("%v", err)
		}
		select {
		case <-stop:
			return nil
		case <-time.After(interval):
		}
	}
}

func (o *Operator) checkPodGroups() error {
	if _, err := o.api.Get("/apis/scheduling.volcano.sh/v1beta1/podgroups"); o.gang && cluster.IsNotFound(err) {
		return errors.New("enableGangScheduling is true, but PodGroup is not in cluster")
	}
	return nil
}

// Upstream watches Volcano's jobs as well, whatever schedules the pods.
func (o *Operator) checkKinds() error {
	for _, path := range []string{jobs, "/apis/batch.volcano.sh/v1alpha1/jobs"} {
		if _, err := o.api.Get(path); err != nil {
			return fmt.Errorf("if kind is a CRD, it should be installed before calling Start: %w", err)
		}
	}
	return nil
}

// ReconcileAll looks at each job once.
func (o *Operator) ReconcileAll() error {
	found, err := o.api.Get(jobs)
	if err != nil {
		return err
	}
	items, _ := cluster.At(found, "items").([]any)
	var problems []error
	for _, item := range items {
		if err := o.reconcile(job{item.(cluster.Object)}); err != nil {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

func (o *Operator) reconcile(j job) error {
	if j.deleted() || j.ended() {
		return nil
	}
	if err := j.check(); err != nil {
		return o.tell(j, "Failed", "JobValidFailed", err.Error())
	}
	if err := o.tell(j, "Created", "JobCreated", fmt.Sprintf("Job %s is create.", j.name())); err != nil {
		return err
	}
	if o.gang {
		if err := o.ensure(j.path("scheduling.volcano.sh/v1beta1", "podgroups"), j.podGroup()); err != nil {
			return err
		}
	}
	service, err := o.service(j)
	if err != nil {
		return err
	}
	pods := make([]cluster.Object, 0, j.total())
	for _, replica := range j.replicas() {
		pod, err := o.pod(j, replica, service)
		if err != nil {
			return err
		}
		pods = append(pods, pod)
	}
	if err := o.rankTable(j, pods); err != nil {
		return err
	}
	return o.conclude(j, pods)
}

func (o *Operator) service(j job) (cluster.Object, error) {
	path := fmt.Sprintf("/api/v1/namespaces/%s/services", j.namespace())
	if err := o.ensure(path, j.service()); err != nil {
		return nil, err
	}
	return o.api.Get(path + "/" + j.leader())
}

func (o *Operator) pod(j job, r replica, service cluster.Object) (cluster.Object, error) {
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods", j.namespace())
	pod, err := o.api.Get(path + "/" + r.name)
	if !cluster.IsNotFound(err) {
		return pod, err
	}
	definition := j.pod(r, cluster.Text(service, "spec", "clusterIP"), o.gang)
	if err := o.api.Create(path, definition); err != nil {
		return nil, err
	}
	logging.Info("create pod: %s/%s success", j.namespace(), r.name)
	return definition, nil
}

// rankTable fills the job's ConfigMap, if it has one, once every pod has its chips and its address.
func (o *Operator) rankTable(j job, pods []cluster.Object) error {
	path := fmt.Sprintf("/api/v1/namespaces/%s/configmaps/rings-config-%s", j.namespace(), j.name())
	table, complete := tableOf(pods)
	if !complete {
		return nil
	}
	configMap, err := o.api.Get(path)
	if cluster.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(table)
	if err != nil || cluster.Text(configMap, "data", "hccl.json") == string(text) {
		return err
	}
	configMap["data"] = cluster.Object{"hccl.json": string(text), "version": "0"}
	return o.api.Update(path, configMap)
}

// conclude says how far the job is. Upstream also restarts a job whose pod failed; that is not simulated.
func (o *Operator) conclude(j job, pods []cluster.Object) error {
	phases := map[string]int{}
	for _, pod := range pods {
		phases[cluster.Text(pod, "status", "phase")]++
	}
	switch {
	case phases["Failed"] > 0:
		return o.tell(j, "Failed", "JobFailed", fmt.Sprintf("Job <%s> has failed because has pod failed.", j.title()))
	case cluster.Text(pods[0], "status", "phase") == "Succeeded":
		return o.tell(j, "Succeeded", "JobSucceeded", fmt.Sprintf("Job <%s> successfully completed.", j.title()))
	case phases["Running"] == len(pods):
		return o.tell(j, "Running", "JobRunning", fmt.Sprintf("Job <%s> is running.", j.title()))
	}
	return nil
}

func (o *Operator) tell(j job, kind, reason, message string) error {
	if !j.add(kind, reason, message) {
		return nil
	}
	logging.Info("job <%s>: %s", j.title(), kind)
	return o.api.Update(j.path("mindxdl.gitee.com/v1", "ascendjobs")+"/"+j.name()+"/status", j.object)
}

func (o *Operator) ensure(collection string, object cluster.Object) error {
	_, err := o.api.Get(collection + "/" + cluster.Text(object, "metadata", "name"))
	if cluster.IsNotFound(err) {
		return o.api.Create(collection, object)
	}
	return err
}
