// Command client asks the bank for transfers when it is measured beside other systems; system.sh calls it.
//
//	client ports                      print two free ports
//	client ready URL...               succeed when all services are ready
//	client load URL N CONNECTIONS     make N transfers as fast as they are accepted
//	client rate URL PER_SECOND SECONDS
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"example.com/banking/internal/load"
	"example.com/banking/internal/testenv/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "ports":
		return printPorts()
	case len(args) >= 2 && args[0] == "ready":
		return ready(args[1:])
	case len(args) == 4 && (args[0] == "load" || args[0] == "rate"):
		first, err1 := strconv.Atoi(args[2])
		second, err2 := strconv.Atoi(args[3])
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return transfer(ctx, args[0], args[1], first, second)
	}
	return errors.New("usage: client ports | ready URL... | load URL N CONNECTIONS | rate URL PER_SECOND SECONDS")
}

func printPorts() error {
	taken := map[int]bool{}
	for range 2 {
		port, err := servers.FreePort(taken)
		if err != nil {
			return err
		}
		taken[port] = true
		fmt.Println(port)
	}
	return nil
}

var errNotReady = errors.New("not ready")

func ready(urls []string) error {
	client := http.Client{Timeout: 2 * time.Second}
	for _, url := range urls {
		response, err := client.Get(url + "/readyz")
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return errNotReady
		}
	}
	return nil
}

// accounts are those of account.sql.
func accounts() (ids []string) {
	for i := 1; i <= 1000; i++ {
		ids = append(ids, fmt.Sprintf("00000000-0000-7000-8000-%012x", i))
	}
	return ids
}

func transfer(ctx context.Context, how, url string, first, second int) error {
	c := load.Config{URL: url, Accounts: accounts(), Currency: "EUR"}
	wanted := first
	var r load.Report
	var err error
	if how == "load" {
		r, err = load.Burst(ctx, c, first, second)
	} else {
		wanted = first * second
		c.Rate, c.Duration = float64(first), time.Duration(second)*time.Second
		r, err = load.Run(ctx, c)
	}
	if err == nil && r.Accepted != wanted {
		err = fmt.Errorf("%d of %d accepted; the last failure: %s", r.Accepted, wanted, r.Error)
	}
	return err
}
