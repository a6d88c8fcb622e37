package servers

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const accessFile = "servers.json"

// access is what a pair keeps between starts: the data knows the passwords, and people like addresses that stay.
type access struct {
	AMQPPort         int `json:"amqpPort"`
	ManagementPort   int `json:"managementPort"`
	PrometheusPort   int `json:"prometheusPort"`
	DistributionPort int `json:"distributionPort"`
	EPMDPort         int `json:"epmdPort"`
	PostgresPort     int `json:"postgresPort"`
	// AdminPassword is that of both administrators, ServicePasswords those of the roles and users of Provision.
	AdminPassword    string            `json:"adminPassword"`
	ServicePasswords map[string]string `json:"servicePasswords"`
}

// loadAccess reads the access of an earlier start or makes a new one, and takes its ports, in place of those that are taken already. The
// earlier ports are given up when one of them is somebody else's, or when otherPorts says so.
func loadAccess(dir string, own *Ports, otherPorts bool) (access, error) {
	path := filepath.Join(dir, accessFile)
	var a access
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		a = access{AdminPassword: rand.Text(), ServicePasswords: map[string]string{}}
		for _, name := range provisioned {
			a.ServicePasswords[name] = rand.Text()
		}
	case err != nil:
		return access{}, fmt.Errorf("read the servers' ports and passwords: %w", err)
	default:
		if err := json.Unmarshal(content, &a); err != nil {
			return access{}, fmt.Errorf("read the servers' ports and passwords: %s: %w", path, err)
		}
	}
	own.Release()
	if otherPorts || !a.takePorts(own) {
		if err := a.choosePorts(own); err != nil {
			return access{}, err
		}
	}
	return a, a.save(dir)
}

func (a *access) save(dir string) error {
	content, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the servers' ports and passwords: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, accessFile), content, 0o600); err != nil {
		return fmt.Errorf("write the servers' ports and passwords: %w", err)
	}
	return nil
}

// admit makes passwords for services that have none yet, in data that may be older than they are.
func (a *access) admit(dir string, services []string) error {
	admitted := false
	for _, name := range services {
		if _, known := a.ServicePasswords[name]; !known {
			a.ServicePasswords[name], admitted = rand.Text(), true
		}
	}
	if !admitted {
		return nil
	}
	return a.save(dir)
}

func (a *access) ports() []*int {
	return []*int{&a.AMQPPort, &a.ManagementPort, &a.PrometheusPort, &a.DistributionPort, &a.EPMDPort, &a.PostgresPort}
}

// takePorts takes the ports of an earlier start, all or none.
func (a *access) takePorts(own *Ports) bool {
	for _, port := range a.ports() {
		if *port == 0 || !own.Take(*port) {
			own.Release()
			return false
		}
	}
	return true
}

func (a *access) choosePorts(own *Ports) (err error) {
	for _, port := range a.ports() {
		if *port, err = own.TakeAny(); err != nil {
			return err
		}
	}
	return nil
}
