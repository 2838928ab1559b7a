#pragma once

namespace isochron {

// For products of 64-bit numbers. An extension of g++ and clang, which -Wpedantic wants marked.
__extension__ typedef __int128 Int128;

}  // namespace isochron
