package supervise

import (
	"syscall"
	"time"
)

// Process describes one child of the supervisor.
type Process struct {
	// Name identifies the child in messages; it must be unique among the children that are running.
	Name string `json:"name"`
	// Path is the absolute path of the program, Args its arguments without the program's name.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is the whole environment: nothing is inherited, so that a variable of the caller's shell cannot
	// point a private server at somebody else's.
	Env []string `json:"env"`
	// Dir is the working directory; it must be reachable by User.
	Dir string `json:"dir"`
	// Log is the file that collects the child's output; it is appended to.
	Log string `json:"log"`
	// User is who the child runs as; nil means the calling user.
	User *User `json:"user,omitempty"`
	// StopRank orders the end: children of a higher rank are stopped first, those of one rank in the reverse order of
	// their starts. Without ranks a database that was started again in between would end before its clients.
	StopRank int `json:"stopRank"`
	// StopSignal asks the child to end (SIGTERM when zero); after StopTimeout (10 s when zero) it is killed.
	StopSignal  syscall.Signal `json:"stopSignal"`
	StopTimeout time.Duration  `json:"stopTimeout"`
}

// User is the identity a child drops to. Only root can drop.
type User struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

const defaultStopTimeout = 10 * time.Second

func (p *Process) stopSignal() syscall.Signal {
	if p.StopSignal == 0 {
		return syscall.SIGTERM
	}
	return p.StopSignal
}

func (p *Process) stopTimeout() time.Duration {
	if p.StopTimeout == 0 {
		return defaultStopTimeout
	}
	return p.StopTimeout
}

// request and reply are the lines that travel between the holder and its supervisor.
type request struct {
	ID     int            `json:"id"`
	Op     string         `json:"op"`
	Name   string         `json:"name,omitempty"`
	Start  *Process       `json:"start,omitempty"`
	Signal syscall.Signal `json:"signal,omitempty"`
}

const (
	opHello  = "hello"
	opStart  = "start"
	opSignal = "signal"
	opStop   = "stop"
)

// reply answers the request ID, or, with ID 0, reports that the child Name has ended.
type reply struct {
	ID     int    `json:"id"`
	Error  string `json:"error,omitempty"`
	Locked bool   `json:"locked,omitempty"` // the Error is ErrLocked, which a text cannot carry
	PID    int    `json:"pid,omitempty"`
	Name   string `json:"name,omitempty"`
	Exit   string `json:"exit,omitempty"`
}

func (p *Process) credential() *syscall.Credential {
	if p.User == nil {
		return nil
	}
	return &syscall.Credential{Uid: p.User.UID, Gid: p.User.GID}
}
