// A field that few of its owners use, allocated on first write.
#pragma once

#include <memory>
#include <utility>

namespace rlx {

/// A T that is allocated when it is first written. Until then it reads as T() and takes the space of a pointer. Copies
/// are deep.
template <class T>
class LazyField {
 public:
  LazyField() = default;
  LazyField(T value) { *this = std::move(value); }  // NOLINT(implicit)
  LazyField(const LazyField& other) : held_(other.held_ ? std::make_unique<T>(*other.held_) : nullptr) {}
  LazyField(LazyField&&) noexcept = default;
  LazyField& operator=(LazyField other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  LazyField& operator=(T value) {
    held_ = value == T() ? nullptr : std::make_unique<T>(std::move(value));
    return *this;
  }

  const T& operator*() const {
    static const T nothing{};
    return held_ ? *held_ : nothing;
  }
  const T* operator->() const { return &**this; }
  /// The value for writing; allocates it.
  T& made() {
    if (!held_) held_ = std::make_unique<T>();
    return *held_;
  }

 private:
  std::unique_ptr<T> held_;
};

template <class T>
using OnDemand [[deprecated("now LazyField")]] = LazyField<T>;

}  // namespace rlx
