#include "python/native/ids.h"

#include <limits>
#include <string>

#include "isochron/core/require.h"
#include "python/native/python_value.h"

namespace isochron::python {

std::vector<std::vector<SequenceId>> id_lists_of(nb::handle lists, std::string_view where,
                                                 std::string_view name) {
  require(PyList_Check(lists.ptr()) || PyTuple_Check(lists.ptr()), where,
          "{} is {}, must be a list of lists of integers", name, shown_value(lists));
  std::vector<std::vector<SequenceId>> result;
  for (const nb::handle list : nb::borrow(lists)) {
    const std::string inner = fmt::format("{}[{}]", name, result.size());
    std::vector<SequenceId>& ids = result.emplace_back();
    const Integers integers(list, where, inner);
    for (const std::int64_t id : integers.span()) {
      require(id >= 0 && id <= std::numeric_limits<std::int32_t>::max(), where,
              "{}[{}] is {}, must be an id from 0 on", inner, ids.size(), id);
      ids.emplace_back(static_cast<std::int32_t>(id));
    }
  }
  return result;
}

}  // namespace isochron::python
