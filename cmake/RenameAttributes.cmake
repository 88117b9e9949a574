# cmake -DINPUT=… -DOUTPUT=… -P RenameAttributes.cmake
# `unsigned` is an attribute of the dialect but no C++ identifier, so the ODS files say `is_unsigned`. The attribute's name
# is the string literal in the generated C++, and every occurrence in the generated Python.
file(READ "${INPUT}" text)
if(OUTPUT MATCHES "\\.py$")
  string(REPLACE "is_unsigned" "unsigned" text "${text}")
else()
  string(REPLACE "\"is_unsigned\"" "\"unsigned\"" text "${text}")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${text}" @ONLY)
