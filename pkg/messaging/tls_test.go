package messaging_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// newAuthority makes a certificate for a server called name, and writes the file by which a client knows it.
func newAuthority(t *testing.T, name string) (certificate tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// encrypted is the URL of the broker behind an endpoint that speaks TLS.
func encrypted(t *testing.T, rawURL, name string) string {
	t.Helper()
	certificate, file := newAuthority(t, name)
	broker, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	target := broker.Host
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			forward := func(to, from net.Conn) {
				_, _ = io.Copy(to, from) // its end is the end of both
				_, _ = to.Close(), from.Close()
			}
			go forward(server, client)
			go forward(client, server)
		}
	}()
	broker.Scheme, broker.Host = "amqps", listener.Addr().String()
	broker.RawQuery = url.Values{"cacertfile": {file}, "server_name_indication": {name}}.Encode()
	return broker.String()
}

// The guard has to see what TLS carries, not how.
func TestEncryptedConnectionsAreGuardedToo(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s, c := transfer(succeed)
	s.URLs = []string{encrypted(t, env.AMQPURL, "broker.test")}
	f := startOn(t, env, s, c)
	f.becomesReady()
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(body("deep")), Headers: tooDeep()})
	f.publishBody(debited, body("m"))
	if m := f.next(); m.MessageID != "m" {
		t.Errorf("got %s", m.MessageID)
	}
	if d := f.take(contract.ParkingLot); d.Headers["x-park-reason"] != "VALIDATION" {
		t.Errorf("quarantined with %v", d.Headers)
	}
	if conn, err := f.session.Dial(t.Context(), "look"); err != nil || conn.Close() != nil {
		t.Errorf("a connection beside them: %v", err)
	}
}

func TestABrokerThatIsAnotherIsNotBelieved(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s, _ := transfer(succeed)
	good := encrypted(t, env.AMQPURL, "broker.test")
	_, other := newAuthority(t, "broker.test")
	for what, uri := range map[string]string{
		"another authority":   replaceQuery(t, good, "cacertfile", other),
		"another name":        replaceQuery(t, good, "server_name_indication", "other.test"),
		"no file":             replaceQuery(t, good, "cacertfile", other+".none"),
		"no authority at all": replaceQuery(t, good, "cacertfile", os.Args[0]),
	} {
		s.URLs = []string{uri}
		conn, err := messaging.NewSession(s).Dial(t.Context(), "look")
		if err == nil || conn != nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: connected %v, error %v", what, conn != nil, err)
		}
	}
}

func replaceQuery(t *testing.T, rawURL, name, value string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
