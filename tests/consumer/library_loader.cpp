// A program that loads a library with rlx inside while it runs, as programs in other languages do, and unloads it.
#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (int round = 0; round < 2; ++round) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    void* const function = library ? dlsym(library, "doubled_plus_one") : nullptr;
    if (!function) {
      std::puts(dlerror());
      return 1;
    }
    std::printf("%g\n", static_cast<double>(reinterpret_cast<float (*)(float)>(function)(4)));
    if (dlclose(library) != 0) return 1;
  }
}
