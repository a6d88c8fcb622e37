package quarantine

import (
	"errors"
	"fmt"

	"example.com/banking/pkg/service"
)

// Anybody can put a message into a queue, so one of them may be something that nobody thought of and that JSON cannot say. What such a
// message must never do is to stand in the way of the others.

// errClient says that the client does not take the answer any more.
var errClient = errors.New("the client is gone")

// tell sends what is said of one message to the client, and answers whether it could be said. What cannot be is in the log, and no error.
func (q *Quarantine) tell(stream *service.Stream, p *parked, item any) (told bool, err error) {
	err = stream.Item(item)
	switch {
	case errors.Is(err, service.ErrUnwritable):
		q.Logger.Error("a quarantined message cannot be told of", "queue", p.Queue, "message_id", p.Key, "error", err)
		return false, nil
	case err != nil:
		return false, errors.Join(errClient, err)
	}
	return true, nil
}

// writable parts the messages that the audit can hold from those that it cannot. The latter have failed, and stay where they are.
func writable(tasks []*task) (able, unable []*task) {
	for _, t := range tasks {
		var err error
		if t.headers, t.properties, err = written(t.parked); err != nil {
			t.settle(OutcomeFailed, OutcomeFailed, fmt.Sprintf("it stays, because the audit cannot hold it: %v", err))
			unable = append(unable, t)
			continue
		}
		able = append(able, t)
	}
	return able, unable
}
