// Copyright (c) 2026, npuops.ascend maintainers
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Package cluster is the little of a Kubernetes client that the simulated components need. It uses the pod's own
// credentials, so that what they may do is what the manifests allow them.
package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const credentials = "/var/run/secrets/kubernetes.io/serviceaccount/"

// Object is any object of the API.
type Object = map[string]any

// Error is an answer that says no.
type Error struct {
	Method, Path string
	Status       int
	Message      string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.Method, e.Path, e.Status, e.Message)
}

// Client talks to one server.
type Client struct {
	base string
	http *http.Client
}

// API is the cluster's API server.
func API() (*Client, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("unable to load in-cluster configuration: KUBERNETES_SERVICE_HOST and _PORT must be defined")
	}
	authority, err := os.ReadFile(credentials + "ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return client("https://"+net.JoinHostPort(host, port), &tls.Config{RootCAs: pool}), nil
}

// Kubelet is the kubelet of the node with that address; upstream does not check its certificate either.
func Kubelet(host string) *Client {
	port := os.Getenv("KUBELET_PORT")
	if port == "" {
		port = "10250"
	}
	return client("https://"+net.JoinHostPort(host, port), &tls.Config{InsecureSkipVerify: true})
}

func client(base string, config *tls.Config) *Client {
	return &Client{base, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}}
}

// Get reads an object.
func (c *Client) Get(path string) (Object, error) { return c.call("GET", path, "", nil) }

// Create makes an object in a collection.
func (c *Client) Create(path string, object Object) error {
	_, err := c.call("POST", path, "application/json", object)
	return err
}

// Update replaces an object.
func (c *Client) Update(path string, object Object) error {
	_, err := c.call("PUT", path, "application/json", object)
	return err
}

// Patch merges into an object.
func (c *Client) Patch(path string, patch Object) error {
	_, err := c.call("PATCH", path, "application/strategic-merge-patch+json", patch)
	return err
}

// Delete removes an object.
func (c *Client) Delete(path string) error {
	_, err := c.call("DELETE", path, "", nil)
	return err
}

// Watch reads events until the server ends it; nobody here does anything with them.
func (c *Client) Watch(path string) error {
	response, err := c.send("GET", path, "", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func (c *Client) call(method, path, kind string, body Object) (Object, error) {
	response, err := c.send(method, path, kind, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var object Object
	return object, json.NewDecoder(response.Body).Decode(&object)
}

func (c *Client) send(method, path, kind string, body Object) (*http.Response, error) {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, c.base+path, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(credentials + "token")
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(bytes.TrimSpace(token)))
	request.Header.Set("Content-Type", kind)
	// As client-go's, whose first half the API server takes for the name of who writes.
	request.Header.Set("User-Agent", filepath.Base(os.Args[0])+"/v0.0.0")
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		var status struct{ Message string }
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = string(bytes.TrimSpace(text))
		}
		return nil, &Error{method, path, response.StatusCode, status.Message}
	}
	return response, nil
}

// IsNotFound says whether the answer was that there is no such thing.
func IsNotFound(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// Exists says whether the answer was that there is such a thing already.
func Exists(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Status == http.StatusConflict
}

// At goes down an object by keys; nil where there is nothing.
func At(object any, keys ...string) any {
	for _, key := range keys {
		inner, ok := object.(Object)
		if !ok {
			return nil
		}
		object = inner[key]
	}
	return object
}

// Text is At as a string.
func Text(object any, keys ...string) string { text, _ := At(object, keys...).(string); return text }
