// The program of each border: a library, whole, that links with those alone that it may use.
int main() { return 0; }
