// The data kinds whose files hold whole arrays. TANDEM_ARRAY_FORMAT(kind): `read_file` of
// array_file.h for this type, in a file of this folder.
TANDEM_ARRAY_FORMAT(IdxFiles)
TANDEM_ARRAY_FORMAT(CifarFiles)
TANDEM_ARRAY_FORMAT(NpzFiles)
