/* What a program without a runtime hears errors by. */
void board_error(const char *kind, const char *message);
