// The sweeps of all built-in criteria and shapes, compiled once for all extension modules.
// See slotkern/window/search.hpp.
#define SLOTKERN_SEARCH_LINKAGE
#include "slotkern/window/search.hpp"
