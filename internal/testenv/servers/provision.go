package servers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"example.com/banking/internal/management"
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
//
// Any other service has a quarantine under its own name, so that of what is shared it needs the exchange of the events and nothing else.
func ServiceGrant(service string) Grant {
	if service != accountName && service != transferName {
		own := service + `\..*|banking\.events`
		return Grant{Configure: "^(" + own + ")$", Write: "^(" + own + `|amq\.default)$`, Read: "^(" + own + ")$"}
	}
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
	Others                               []ServiceAccess // of the services named to Provision, in that order
}

// ServiceAccess are the addresses of one service, with its own credentials.
type ServiceAccess struct{ Name, AMQPURL, DatabaseURL string }

// Provision creates what a bank needs, with the least rights that do: a database per service, owned by a role that
// can reach no other, a vhost, a broker user per service limited to its names, and an operator. It can be repeated. others are services
// beside account and transfer; their data stays when they are no longer named.
func (s *Servers) Provision(ctx context.Context, others ...string) (Bank, error) {
	if err := s.access.admit(s.cfg.Dir, others); err != nil {
		return Bank{}, err
	}
	for _, service := range append([]string{accountName, transferName}, others...) {
		if err := s.provisionDatabase(ctx, service); err != nil {
			return Bank{}, fmt.Errorf("provision database of %s: %w", service, err)
		}
	}
	if err := s.provisionBroker(ctx, others); err != nil {
		return Bank{}, fmt.Errorf("provision broker: %w", err)
	}
	password := s.access.ServicePasswords
	bank := Bank{
		AccountAMQPURL:      s.AMQPURL(accountName, password[accountName], Vhost),
		AccountDatabaseURL:  s.PostgresURL(accountName, password[accountName], accountName),
		TransferAMQPURL:     s.AMQPURL(transferName, password[transferName], Vhost),
		TransferDatabaseURL: s.PostgresURL(transferName, password[transferName], transferName),
		OperatorAMQPURL:     s.AMQPURL(operatorName, password[operatorName], Vhost),
		ManagementURL:       s.ManagementURL(operatorName, password[operatorName]),
	}
	for _, name := range others {
		bank.Others = append(bank.Others, ServiceAccess{
			Name: name, AMQPURL: s.AMQPURL(name, password[name], Vhost), DatabaseURL: s.PostgresURL(name, password[name], name),
		})
	}
	return bank, nil
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

func (s *Servers) provisionBroker(ctx context.Context, others []string) error {
	m := management.New(s.Addresses().ManagementURL)
	vhost := url.PathEscape(Vhost)
	if err := m.Put(ctx, "/api/vhosts/"+vhost, struct{}{}); err != nil {
		return err
	}
	all := Grant{Configure: ".*", Write: ".*", Read: ".*"}
	type user struct {
		name, tags string
		grant      Grant
	}
	users := []user{
		{accountName, "", ServiceGrant(accountName)},
		{transferName, "", ServiceGrant(transferName)},
		{operatorName, "management", all},
		{adminUser, "administrator", all},
	}
	for _, name := range others {
		users = append(users, user{name, "", ServiceGrant(name)})
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
