"""The types that OpenSHMEM 1.6 has, by the families of its functions, copied by hand from its tables: for
tests that owe nothing to the table that GSHMEM's headers are made from."""

C = {
    'float': 'float', 'double': 'double', 'longdouble': 'long double', 'char': 'char',
    'schar': 'signed char', 'short': 'short', 'int': 'int', 'long': 'long',
    'longlong': 'long long', 'uchar': 'unsigned char', 'ushort': 'unsigned short',
    'uint': 'unsigned int', 'ulong': 'unsigned long', 'ulonglong': 'unsigned long long',
    'int8': 'int8_t', 'int16': 'int16_t', 'int32': 'int32_t', 'int64': 'int64_t',
    'uint8': 'uint8_t', 'uint16': 'uint16_t', 'uint32': 'uint32_t', 'uint64': 'uint64_t',
    'size': 'size_t', 'ptrdiff': 'ptrdiff_t',
    'complexf': 'float _Complex', 'complexd': 'double _Complex',
}
RMA = '''float double longdouble char schar short int long longlong uchar ushort uint ulong ulonglong
    int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff'''
AMO = 'int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff'
EXTENDED = 'float double ' + AMO
BITWISE = 'uint ulong ulonglong int32 int64 uint32 uint64'
WAIT = 'short ushort ' + AMO
BITS = 'uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size'
SUMS = RMA + ' complexf complexd'
SIZES = '8 16 32 64 128'
