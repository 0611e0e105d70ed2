// NumPy files: npy (one array) and npz (a zip archive of npy files).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rlx/formats/named_tensor.h"

namespace rlx {

/// Reads an npy file of version 1.0, 2.0 or 3.0, in either byte order and either memory order, as a row-major tensor.
/// Errors: NotFound, BadFile, Unsupported for element types without an rlx dtype (strings, records, dates).
Tensor read_npy(const std::string& path);
/// The same from memory; `source` names the bytes in errors.
Tensor parse_npy(std::span<const std::byte> bytes, const std::string& source);

/// The header of an npy file; little-endian row-major data must follow it. For writers that produce rows one by one.
/// Errors: Unsupported for dtypes NumPy lacks (bf16 and the 8- and 4-bit types).
std::string npy_header(DType dtype, std::span<const std::int64_t> dims);
/// A whole npy file.
std::string npy_bytes(const Tensor& tensor);
void write_npy(const std::string& path, const Tensor& tensor);

/// Reads every array of an npz file, stored or deflated, in the order of the zip directory. Names lose ".npy". Errors:
/// those of read_npy; BadFile for a damaged zip or a checksum mismatch.
std::vector<NamedTensor> read_npz(const std::string& path);
std::vector<NamedTensor> parse_npz(std::span<const std::byte> bytes, const std::string& source);

/// Writes arrays as an npz file without compression. Errors: InvalidArgument for a repeated or empty name, Unsupported
/// for dtypes NumPy lacks and for more than 4 GiB.
void write_npz(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace rlx
