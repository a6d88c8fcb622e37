//go:build !linux

package supervise

import "syscall"

// sysProcAttr has nothing like Linux's parent death signal: a killed supervisor leaves its children here.
func sysProcAttr(p *Process) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: p.credential()}
}
