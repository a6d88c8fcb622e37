#!/usr/bin/env bash
# One database and one role per service. It runs once, when the data volume is
# empty. A service that is broken into can then read and change its own tables
# and nothing else: not its neighbour's database, not the maintenance one.
set -eo pipefail # not -u: where the executable bit is lost, the image's entry point sources this file

# as_superuser DATABASE [SERVICE PASSWORD]: SQL from standard input, stopping at the first error.
# :'password' is quoted by psql, so a password may hold any character.
as_superuser() {
  psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$1" \
    --set service="${2:-}" --set password="${3:-}"
}

create_service() {
  local service=$1 password=$2
  as_superuser postgres "$service" "$password" <<'SQL'
CREATE ROLE :"service" LOGIN PASSWORD :'password'
  NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 40;
CREATE DATABASE :"service" OWNER :"service";
REVOKE ALL ON DATABASE :"service" FROM PUBLIC;
SQL
}

# Every role is a member of PUBLIC, which may connect to any database by default.
as_superuser postgres <<'SQL'
REVOKE ALL ON DATABASE postgres, template1 FROM PUBLIC;
SQL

create_service account "${ACCOUNT_DB_PASSWORD:?}"
create_service transfer "${TRANSFER_DB_PASSWORD:?}"
