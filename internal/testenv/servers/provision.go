package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// Vhost is the virtual host of a provisioned bank.
	Vhost = "banking"

	accountName  = "account"
	transferName = "transfer"
	operatorName = "operator"
)

// provisioned are the names that get a password of their own.
var provisioned = []string{accountName, transferName, operatorName}

// Grant is what a broker user may do: regular expressions over the names of exchanges and queues. The default exchange is
// called amq.default here.
type Grant struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// ServiceGrant limits a service to its own names and the shared exchanges and parking lot. Only transfer, whose messages are parked
// there, may take from the parking lot. The same patterns stand in deploy/rabbitmq/definitions.json.
func ServiceGrant(service string) Grant {
	own := service + `\..*|banking\.(events|dlx|dead-letters)`
	readable := own
	if service != transferName {
		readable = service + `\..*|banking\.(events|dlx)`
	}
	return Grant{
		Configure: "^(" + own + ")$",
		Write:     "^(" + own + `|amq\.default)$`,
		Read:      "^(" + readable + ")$",
	}
}

// Bank holds the addresses of a provisioned bank, each with the credentials of its user.
type Bank struct {
	AccountAMQPURL, AccountDatabaseURL   string
	TransferAMQPURL, TransferDatabaseURL string
	OperatorAMQPURL, ManagementURL       string
}

// Provision creates what a bank needs, with the least rights that do: a database per service, owned by a role that
// can reach no other, a vhost, a broker user per service limited to its names, and an operator. It can be repeated.
func (s *Servers) Provision(ctx context.Context) (Bank, error) {
	for _, service := range []string{accountName, transferName} {
		if err := s.provisionDatabase(ctx, service); err != nil {
			return Bank{}, fmt.Errorf("provision database of %s: %w", service, err)
		}
	}
	if err := s.provisionBroker(ctx); err != nil {
		return Bank{}, fmt.Errorf("provision broker: %w", err)
	}
	password := s.access.ServicePasswords
	return Bank{
		AccountAMQPURL:      s.AMQPURL(accountName, password[accountName], Vhost),
		AccountDatabaseURL:  s.PostgresURL(accountName, password[accountName], accountName),
		TransferAMQPURL:     s.AMQPURL(transferName, password[transferName], Vhost),
		TransferDatabaseURL: s.PostgresURL(transferName, password[transferName], transferName),
		OperatorAMQPURL:     s.AMQPURL(operatorName, password[operatorName], Vhost),
		ManagementURL:       s.ManagementURL(operatorName, password[operatorName]),
	}, nil
}

func (s *Servers) provisionDatabase(ctx context.Context, service string) error {
	conn, err := pgx.Connect(ctx, s.Addresses().PostgresURL)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	name := pgx.Identifier{service}.Sanitize()
	const duplicateObject, duplicateDatabase = "42710", "42P04"
	statements := []struct{ sql, mayBe string }{
		{"CREATE ROLE " + name + " LOGIN", duplicateObject},
		{"ALTER ROLE " + name + " PASSWORD " + literal(s.access.ServicePasswords[service]), ""},
		{"CREATE DATABASE " + name + " OWNER " + name, duplicateDatabase},
		{"REVOKE ALL ON DATABASE " + name + " FROM PUBLIC", ""},
		{"REVOKE CONNECT ON DATABASE postgres FROM PUBLIC", ""},
		{"REVOKE CONNECT ON DATABASE template1 FROM PUBLIC", ""},
	}
	for _, st := range statements {
		if _, err := conn.Exec(ctx, st.sql); err != nil {
			var pgErr *pgconn.PgError
			if errors.As(err, &pgErr) && st.mayBe != "" && pgErr.Code == st.mayBe {
				continue
			}
			return err
		}
	}
	return nil
}

// literal quotes a text for statements that take no parameters.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (s *Servers) provisionBroker(ctx context.Context) error {
	m := NewManagement(s.Addresses().ManagementURL)
	vhost := url.PathEscape(Vhost)
	if err := m.Put(ctx, "/api/vhosts/"+vhost, struct{}{}); err != nil {
		return err
	}
	all := Grant{Configure: ".*", Write: ".*", Read: ".*"}
	users := []struct {
		name, tags string
		grant      Grant
	}{
		{accountName, "", ServiceGrant(accountName)},
		{transferName, "", ServiceGrant(transferName)},
		{operatorName, "management", all},
		{adminUser, "administrator", all},
	}
	for _, u := range users {
		if password, ok := s.access.ServicePasswords[u.name]; ok {
			body := map[string]string{"password": password, "tags": u.tags}
			if err := m.Put(ctx, "/api/users/"+u.name, body); err != nil {
				return err
			}
		}
		if err := m.Put(ctx, "/api/permissions/"+vhost+"/"+u.name, u.grant); err != nil {
			return err
		}
	}
	return nil
}
