/* Serves until its standard input ends; prints the port. */
#include <relaxide.h>
#include <stdio.h>

int main(void) {
    int port = 0;
    RelaxideServer *server = NULL;
    if (relaxide_rpc_serve("127.0.0.1", NULL, "board", &server) == 0) return 2;
    if (relaxide_rpc_serve("127.0.0.1", &port, "board", &server) != 0) {
        fprintf(stderr, "%s\n", relaxide_last_error());
        return 1;
    }
    printf("%d\n", port);
    fflush(stdout);
    while (getchar() != EOF) {
    }
    relaxide_rpc_stop(server);
    relaxide_rpc_stop(NULL);
    return 0;
}
