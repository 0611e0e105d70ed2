// A program that links a library with rlx inside.
#include <cstdio>

extern "C" float doubled_plus_one(float value);

int main() { std::printf("%g\n", static_cast<double>(doubled_plus_one(4))); }
