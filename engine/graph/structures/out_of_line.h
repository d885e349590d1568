// Lets large structures be copied by functions that are compiled once.
//
// Where a structure holds many vectors and strings, its copy constructor, assignment and destructor
// are long, and the compiler makes them anew in every file that copies one: 7 s of processor time
// for each file that copied, assigned and destroyed a whole RunConfig.
#pragma once

/// To be put into the structure. Members keep their default values, but `Type{.member = value}`
/// does not compile any more.
#define COPIED_OUT_OF_LINE(Type)    \
  Type();                           \
  Type(const Type&);                \
  Type(Type&&) noexcept;            \
  Type& operator=(const Type&);     \
  Type& operator=(Type&&) noexcept; \
  ~Type()

/// To be put into the structure's .cpp file.
#define DEFINE_COPIES(Type)                         \
  Type::Type() = default;                           \
  Type::Type(const Type&) = default;                \
  Type::Type(Type&&) noexcept = default;            \
  Type& Type::operator=(const Type&) = default;     \
  Type& Type::operator=(Type&&) noexcept = default; \
  Type::~Type() = default
