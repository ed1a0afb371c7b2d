-- What the file is, and what SQLite itself finds wrong with it: up to a hundred problems.

-- name: describe
SELECT sqlite_version(), user_version, page_count * page_size
FROM pragma_user_version, pragma_page_count, pragma_page_size

-- name: quick_check
PRAGMA quick_check(100)

-- name: integrity_check
PRAGMA integrity_check(100)
