package main

import (
	"net/url"

	"example.com/banking/pkg/service"
)

// config is what the environment says.
type config struct {
	service.Config

	AccountURL    string `env:"ACCOUNT_URL" envDefault:"http://127.0.0.1:8081" desc:"the account service"`
	TransferURL   string `env:"TRANSFER_URL" envDefault:"http://127.0.0.1:8082" desc:"the transfer service"`
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL,required" secret:"true" desc:"RabbitMQ's management API, with user and password"`
	Vhost         string `env:"RABBITMQ_VHOST" envDefault:"banking" desc:"the vhost whose queues are shown"`
	ControlURL    string `env:"CONTROL_URL" desc:"the keeper of a bank from 'bank up', which runs the exercises; without it they cannot be run from the page"`
}

var defaults = service.Defaults{"HTTP_ADDR": "127.0.0.1:8080"}

// Validate checks what the types of the fields do not.
func (c config) Validate() (wrong []service.Invalid) {
	for _, address := range []struct{ name, value, wanted string }{
		{"ACCOUNT_URL", c.AccountURL, "http://host:port or https://…"},
		{"TRANSFER_URL", c.TransferURL, "http://host:port or https://…"},
		{"CONTROL_URL", c.ControlURL, "http://host:port, or nothing"},
		{"RABBITMQ_MANAGEMENT_URL", c.ManagementURL, "http://user:password@host:port or https://…"},
	} {
		if address.value == "" && address.name == "CONTROL_URL" {
			continue
		}
		u, err := url.Parse(address.value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
			wrong = append(wrong, service.Invalid{Name: address.name, Wanted: address.wanted})
		}
	}
	return wrong
}
