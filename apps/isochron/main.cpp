#include <cstdio>

int main() {
  std::printf("isochron %s\n", ISOCHRON_VERSION);
  return 0;
}
