// Package newservice makes a new service out of a template: a whole one that compiles, passes its own tests and can be read in one
// sitting, as somebody would write it by hand after reading account and transfer.
//
// The template is the folder files. What is in files/service is the service itself; files/repository is what makes it one of this
// repository's, files/module what makes it a module of its own, files/replaced what such a module needs when a checkout stands in for the
// version of this repository that it would require otherwise.
//
//go:generate go test -run TestModuleIsTidy . -update
package newservice

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Retries are the kinds of road that a failed message can take, as --retry names them.
var Retries = []string{"in-process", "lap", "tiered"}

// Order says what to make.
type Order struct {
	Name  string
	Keys  []string // routing keys of the events it consumes
	Retry string   // one of Retries
	Port  int      // 0: the one after the highest that a service has

	// Checkout is the root of a checkout of this repository. It may be "" for a module that requires a Version.
	Checkout string
	// Module is the path of a module of its own, in the folder Dir; "" makes a service of the checkout.
	Module, Dir string
	// Version is that of this repository which the module requires; "" replaces it by the checkout.
	Version string
}

var (
	serviceName = regexp.MustCompile(`^[a-z][a-z0-9]{1,29}$`)
	modulePath  = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._~-]*(/[a-zA-Z0-9][a-zA-Z0-9._~-]*)*$`)
	version     = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+[a-zA-Z0-9.+-]*$`)
)

// reserved names mean something else already: to the bank, whose programs, users, databases and variables (AMQP_URL) are called like that,
// or to PostgreSQL and RabbitMQ.
var reserved = []string{
	"account", "transfer", "console", "bank", "banking", "operator", "admin", "seed", "variants", "services", "service",
	"amqp", "amq", "rabbitmq", "control", "postgres", "template0", "template1", "public", "prometheus", "grafana", "guest", "main", "test",
}

// firstPort is where the ports of new services begin: account, transfer and the console have 8080 to 8082.
const firstPort = 8083

// check fills in the port and says what is wrong with an order, and what to do.
func (o *Order) check() error {
	switch {
	case !serviceName.MatchString(o.Name):
		return fmt.Errorf("%q cannot be the name of a service: it names a program, a database, a user and queues, "+
			"so use 2 to 30 small letters and digits, a letter first", o.Name)
	case slices.Contains(reserved, o.Name) || strings.HasPrefix(o.Name, "pg"):
		return fmt.Errorf("%q is taken: the bank or one of its servers calls something else like that; choose another name", o.Name)
	case !slices.Contains(Retries, o.Retry):
		return fmt.Errorf("there is no retry road %q: choose one of %s", o.Retry, strings.Join(Retries, ", "))
	case o.Port < 0 || o.Port > 65535:
		return fmt.Errorf("%d is no port: choose one from 1 to 65535, or none for the next that is free", o.Port)
	case len(o.Keys) == 0:
		return errors.New("a service that consumes nothing has no use for this template: name at least one routing key")
	case o.Module == "" && o.Checkout == "":
		return errors.New("this is no checkout of example.com/banking: run it inside one, or make a module of its own with --module PATH")
	case o.Module == "":
		return o.checkService()
	}
	return o.checkModule()
}

func (o *Order) checkService() error {
	if _, err := os.Lstat(filepath.Join(o.Checkout, "services", o.Name)); err == nil {
		return fmt.Errorf("services/%s is there already: choose another name, or remove that folder", o.Name)
	}
	taken, err := ports(o.Checkout)
	if err != nil {
		return err
	}
	if o.Port == 0 {
		for o.Port = firstPort; taken[o.Port] != ""; o.Port++ {
		}
	}
	if owner := taken[o.Port]; owner != "" {
		return fmt.Errorf("port %d is that of %s (services/%s/service.json): choose another, or none for the next that is free", o.Port, owner, owner)
	}
	return nil
}

func (o *Order) checkModule() error {
	if !modulePath.MatchString(o.Module) || o.Module == thisModule || strings.HasPrefix(o.Module, thisModule+"/") {
		return fmt.Errorf("%q cannot be the path of the module: use something like example.org/%s, outside %s", o.Module, o.Name, thisModule)
	}
	if o.Version != "" && !version.MatchString(o.Version) {
		return fmt.Errorf("%q is no version of a module: it looks like v1.2.3", o.Version)
	}
	if o.Version == "" && o.Checkout == "" {
		return fmt.Errorf("the module needs %s: run this inside a checkout, which then replaces it, or name a version to require", thisModule)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("folder of the module: %w", err)
	}
	o.Dir = dir
	if inside, err := filepath.Rel(o.Checkout, dir); o.Checkout != "" && err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
		return fmt.Errorf("%s lies inside the checkout, where a module of its own would be missed by ./...: choose a folder outside it with --to", dir)
	}
	if there, err := os.ReadDir(dir); err == nil && len(there) > 0 {
		return fmt.Errorf("%s is there already and not empty: choose another folder with --to", dir)
	}
	if o.Port == 0 {
		o.Port = firstPort
	}
	return nil
}

// ports are those of the checkout's services, with their names.
func ports(checkout string) (map[int]string, error) {
	files, err := filepath.Glob(filepath.Join(checkout, "services", "*", "service.json"))
	if err != nil {
		return nil, fmt.Errorf("find services: %w", err)
	}
	taken := map[int]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a service's port: %w", err)
		}
		var s struct {
			Port int `json:"port"`
		}
		if err := json.Unmarshal(content, &s); err != nil {
			return nil, fmt.Errorf("read a service's port: %s: %w", file, err)
		}
		taken[s.Port] = filepath.Base(filepath.Dir(file))
	}
	return taken, nil
}
