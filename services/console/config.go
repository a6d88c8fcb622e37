package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"example.com/banking/pkg/service"
)

// config is what the environment says.
type config struct {
	service.Config

	AccountURL    string `env:"ACCOUNT_URL" envDefault:"http://127.0.0.1:8081" desc:"the account service"`
	TransferURL   string `env:"TRANSFER_URL" envDefault:"http://127.0.0.1:8082" desc:"the transfer service"`
	ManagementURL string `env:"RABBITMQ_MANAGEMENT_URL,required" secret:"true" desc:"RabbitMQ's management API, with user and password"`
	Vhost         string `env:"RABBITMQ_VHOST" envDefault:"banking" desc:"the vhost whose queues are shown"`
	Services      string `env:"SERVICES" secret:"true" desc:"services beside these two that are watched as well, up to 10: name=address,… such as fees=http://127.0.0.1:8083"`
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
	if _, err := c.others(); err != nil {
		wrong = append(wrong, service.Invalid{Name: "SERVICES", Wanted: err.Error()})
	}
	return wrong
}

// other is a service beside account and transfer.
type other struct{ name, address string }

// mostOthers keeps what one page looks at within bounds.
const mostOthers = 10

var otherName = regexp.MustCompile(`^[a-z][a-z0-9]{1,29}$`)

// others reads SERVICES. The error says what is wanted.
func (c config) others() (all []other, err error) {
	for text := range strings.SplitSeq(c.Services, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		name, address, _ := strings.Cut(text, "=")
		u, err := url.Parse(address)
		switch {
		case !otherName.MatchString(name) || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return nil, errors.New("name=http://host:port, separated by commas")
		case slices.ContainsFunc(all, func(o other) bool { return o.name == name }) || slices.Contains([]string{"account", "transfer", "console"}, name):
			return nil, fmt.Errorf("each service once, and %s is there already", name)
		}
		all = append(all, other{name, address})
	}
	if len(all) > mostOthers {
		return nil, fmt.Errorf("%d services at most", mostOthers)
	}
	return all, nil
}
