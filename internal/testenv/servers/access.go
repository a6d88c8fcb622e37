package servers

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
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

// loadAccess reads the access of an earlier start or makes a new one. The earlier ports are given up when one of
// them is taken, or when otherPorts says so.
func loadAccess(dir string, otherPorts bool) (access, error) {
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
	if otherPorts || !a.portsFree() {
		if err := a.choosePorts(); err != nil {
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

func (a *access) portsFree() bool {
	for _, port := range a.ports() {
		if *port == 0 || !PortFree(*port) {
			return false
		}
	}
	return true
}

func (a *access) choosePorts() error {
	taken := map[int]bool{}
	for _, port := range a.ports() {
		p, err := FreePort(taken)
		if err != nil {
			return err
		}
		*port, taken[p] = p, true
	}
	return nil
}

// Ports are chosen below the range from which systems take the local ends of outgoing connections (32768 upwards on
// Linux, 49152 elsewhere): such a connection could take the port of a server that is being restarted.
const lowestPort, highestPort = 15000, 32000

// FreePort returns a loopback TCP port that nobody listens on and that is not in taken.
func FreePort(taken map[int]bool) (int, error) {
	for range 1000 {
		port := lowestPort + mathrand.IntN(highestPort-lowestPort)
		if !taken[port] && PortFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", lowestPort, highestPort)
}

// PortFree says whether a loopback TCP port can be listened on.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
