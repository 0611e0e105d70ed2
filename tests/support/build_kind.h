// How a program is built: the sanitizer (g++ defines macros, clang has features), and RLX_SLOW_BUILD, where bounds on
// time are wide: a sanitizer, or libraries without optimization (RLX_UNOPTIMIZED).
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RLX_ADDRESS_SANITIZER 1
#endif
#if __has_feature(thread_sanitizer)
#define RLX_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define RLX_ADDRESS_SANITIZER 1
#endif
#if defined(__SANITIZE_THREAD__)
#define RLX_THREAD_SANITIZER 1
#endif
#if defined(RLX_ADDRESS_SANITIZER) || defined(RLX_THREAD_SANITIZER) || defined(RLX_UNOPTIMIZED)
#define RLX_SLOW_BUILD 1
#endif
