package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// open opens n accounts with the balance and returns their ids.
func (s *system) open(ctx context.Context, n int, balance int64) ([]string, error) {
	ids := make([]string, n)
	failed := make(chan error, 16)
	next := make(chan int)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := range next {
				body := fmt.Sprintf(`{"id":%q,"owner":"Customer %d","currency":"EUR","openingBalanceMinor":%d}`, ids[i], i, balance)
				response, err := http.Post(s.urls["account"]+"/accounts", "application/json", strings.NewReader(body))
				if err == nil {
					_ = response.Body.Close()
					if response.StatusCode != http.StatusCreated {
						err = errors.New(response.Status)
					}
				}
				if err != nil {
					failed <- fmt.Errorf("open account %d: %w", i, err)
					return
				}
			}
		})
	}
	var err error
feed:
	for i := range ids {
		ids[i] = uuid.NewString()
		select {
		case next <- i:
		case err = <-failed:
			break feed
		case <-ctx.Done():
			err = ctx.Err()
			break feed
		}
	}
	close(next)
	clients.Wait()
	return ids, err
}

// transfers counts those that have ended and those that have not.
func (s *system) transfers(ctx context.Context) (ended, open int, err error) {
	err = s.pools["transfer"].QueryRow(ctx, `
select count(*) filter (where status in ('COMPLETED', 'REJECTED', 'REFUNDED')),
       count(*) filter (where status not in ('COMPLETED', 'REJECTED', 'REFUNDED'))
from transfers`).Scan(&ended, &open)
	return ended, open, err
}

// metric reads a figure of a service: the sum of all series whose line begins with the prefix.
func (s *system) metric(service, prefix string) (sum float64, err error) {
	response, err := http.Get(s.urls[service] + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			fields := strings.Fields(rest)
			var value float64
			if len(fields) > 0 {
				if _, err := fmt.Sscan(fields[len(fields)-1], &value); err == nil {
					sum += value
				}
			}
		}
	}
	return sum, lines.Err()
}

// withChannel gives do a channel to the broker, with an operator's rights.
func (s *system) withChannel(do func(*amqp.Channel) error) error {
	conn, err := amqp.Dial(s.access.OperatorAMQPURL)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return do(ch)
}

// waiting is how many messages of a queue nobody has taken.
func waiting(ch *amqp.Channel, queue string) (int, error) {
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return q.Messages, err
}
