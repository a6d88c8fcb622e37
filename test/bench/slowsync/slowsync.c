/*
 * A disk that takes longer to answer, for programs that are started with this library in LD_PRELOAD.
 *
 * SLOWSYNC names a file of four bytes: the microseconds that each flush takes longer, in the machine's own byte order. The
 * file is mapped, so whoever writes to it slows a running server down, and lets it go again: both sides of a comparison come from one process.
 *
 * What waits for the disk is fsync, fdatasync, and syncfs. Not slowed down is sync_file_range, which only asks the kernel to begin
 * writing, and writing to files opened with O_SYNC or O_DSYNC: PostgreSQL does that only with wal_sync_method = open_sync or
 * open_datasync, which is not Linux's default, and the benchmark refuses to measure with them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int flush(int fd);

static const volatile uint32_t *microseconds;

__attribute__((constructor)) static void attach(void)
{
	const char *path = getenv("SLOWSYNC");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof *microseconds, PROT_READ, MAP_SHARED, fd, 0);
	if (at != MAP_FAILED)
		microseconds = at;
	close(fd);
}

/* The wait comes first, and a signal does not shorten it. */
static int slowly(const char *name, int fd)
{
	flush *real = (flush *)dlsym(RTLD_NEXT, name);
	uint32_t us = microseconds ? *microseconds : 0;
	struct timespec left = {us / 1000000, (long)(us % 1000000) * 1000};

	if (!real) {
		errno = ENOSYS;
		return -1;
	}
	while (us > 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
		;
	return real(fd);
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
int syncfs(int fd) { return slowly("syncfs", fd); }
