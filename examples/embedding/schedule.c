/* Books jobs one after another in a pool of free slots, in plain C:
     include="$(python -c 'import slotkern as sk; print(sk.get_include())')"
     c++ -std=c++20 -O3 -ffp-contract=off -I "$include" -c "$include/slotkern/slotkern.cpp"
     cc -I "$include" -c schedule.c && c++ schedule.o slotkern.o -o schedule && ./schedule */
#include <stdio.h>

#include "slotkern/slotkern.h"

int main(void) {
  const slotkern_slot slots[] = {{0, 0, 20, 1, 1}, {1, 0, 30, 2, 3}, {2, 4, 30, 4, 5}};
  slotkern_pool* pool;
  size_t row;
  int code = slotkern_open(slots, 3, &pool, &row);
  if (code != SLOTKERN_OK) return printf("row %zu: %s\n", row, slotkern_words(code)), 1;

  slotkern_request job = slotkern_request_of(2, 8);
  job.budget = 40;
  slotkern_window window;
  slotkern_part parts[2];
  int done = 0;
  for (;;) {
    code = slotkern_find(pool, &job, "start", SLOTKERN_RAGGED, &window, parts);
    if (code == SLOTKERN_OK) code = slotkern_book(pool, window.start, parts, 2, NULL);
    if (code != SLOTKERN_OK) break;
    printf("job %d starts %g costs %g on nodes %d, %d\n", done++, window.start, window.cost,
           (int)parts[0].node, (int)parts[1].node);
  }
  size_t left = 0;
  slotkern_free(pool, NULL, 0, &left);
  printf("then %s; %zu free slots are left\n", slotkern_words(code), left);
  slotkern_close(pool);
  return code != SLOTKERN_NONE;
}
