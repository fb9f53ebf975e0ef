/* Serves until its standard input ends; prints the port. */
#include <relaxide.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    int port = 0;
    RelaxideServer *server = NULL;
    /* What is wrong is told, and nothing is started. */
    if (relaxide_rpc_serve("127.0.0.1", NULL, "board", &server) == 0) return 2;
    if (relaxide_rpc_serve(NULL, &port, "board", &server) == 0) return 3;
    if (relaxide_rpc_serve("127.0.0.1", &port, "board", NULL) == 0) return 4;
    port = 70000;
    if (relaxide_rpc_serve("127.0.0.1", &port, "board", &server) == 0) return 5;
    if (strstr(relaxide_error_message(), "70000 is no port") == NULL) return 6;
    port = 0;
    if (relaxide_rpc_serve("no such host", &port, "board", &server) == 0 || server != NULL) return 7;
    if (relaxide_rpc_serve("127.0.0.1", &port, "board", &server) != 0) {
        fprintf(stderr, "%s\n", relaxide_error_message());
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
