/* Congestion control: how fast the system lets a stream send.
 *
 * BBR, the default of some systems, sends by a timer that it sets anew every few packets. That is
 * good on a long path; between nodes of one network the timer takes longer than the sending
 * (docs/decisions/0010). So a stream begins with a control that needs no timer, CUBIC (Linux's
 * default) or else Reno, which every user may choose, and gets BBR back if the path turns out to
 * be long. The reverse order would not work: the timer stays. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/settings.h"
#include "transport/tcp/socket.h"

enum { LONG_PATH_US = 2000 }; /* a round trip; within a network it takes some ten */

static bool congestion_choose(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0;
}

bool congestion_begin(struct socket_options *o, int fd)
{
    const char *chosen = settings_string(SETTING_TCP_CONGESTION);
    char own[sizeof o->congestion] = "";
    socklen_t size = sizeof own - 1;

    if (chosen[0])
        return congestion_choose(fd, chosen);
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, own, &size) != 0 || strncmp(own, "bbr", 3) != 0)
        return true;
    memcpy(o->congestion, own, sizeof own);
    if (!congestion_choose(fd, "cubic"))
        congestion_choose(fd, "reno");
    return true;
}

void congestion_suit(const struct socket_options *o, int fd)
{
    struct tcp_info info = {.tcpi_rtt = 0};
    socklen_t size = sizeof info;

    if (o->congestion[0] && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        info.tcpi_rtt >= LONG_PATH_US)
        congestion_choose(fd, o->congestion);
}
