package supervise

import "syscall"

// sysProcAttr makes the kernel signal the child when even the supervisor is killed. It counts for the thread that
// starts the child, which is why children are started from the main goroutine only.
func sysProcAttr(p *Process) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: p.credential(), Pdeathsig: p.stopSignal()}
}
