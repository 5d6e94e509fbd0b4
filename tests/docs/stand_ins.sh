# Stand-ins for commands of the guides that need a build, root, a network or another product. Each checks its arguments. The guides' paths below
# /etc, /opt, /srv, /usr and /var are folders of the clone here.

deploy/build.sh() { # the programs are built
  local program
  for program in "$@"; do [ -x "build/release/bin/$program" ]; done
}

pip() { # the folder of a project, or a package that a requirement file pins
  local package
  [ "$1" = install ]
  for package in "${@:2}"; do [ -f "$package/pyproject.toml" ] || grep -q "^${package%%\[*}==" deploy/*-requirements.txt; done
}

python3() { # an environment without pip: Debian has that in a package of its own
  if [ "$1 ${2-}" = "-m venv" ]; then command python3 -m venv --without-pip "$3"; else command python3 "$@"; fi
}

systemctl() { # the units are installed, and so are their programs
  local unit
  [ "$1" != daemon-reload ] || return 0
  [ "$1 $2" = "enable --now" ]
  for unit in "${@:3}"; do
    unit=$PWD/etc/systemd/system/${unit/@*/@}.service
    [ -x "$PWD$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")" ]
  done
}

grafana() { # the address of Prometheus answers, and the provisioned folder has the dashboards
  [ "$1 $2 $4" = "server --homepath --config" ]
  curl --silent --fail "$CHAINFLEET_PROMETHEUS/-/ready"
  local folder
  folder=$PWD$(sed -n 's/^ *path: //p' "$(dirname "$5")"/provisioning/dashboards/*.yaml)
  [ "$(ls "$folder"/*.json | wc -l)" = 5 ]
}

aws() { # `aws s3 sync FOLDER s3://BUCKET/PREFIX --exclude '.*'`, with an S3 server that is not AWS
  [ "$1 $2 $5 $6" = "s3 sync --exclude .*" ]
  (cd "$3" && find . -mindepth 1 -name '.*' -prune -o -type f -printf '%P\n') | while read -r object; do
    curl --silent --show-error --fail --aws-sigv4 "aws:amz:$AWS_REGION:s3" --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" \
      --upload-file "$3/$object" "$AWS_ENDPOINT_URL/${4#s3://}/$object"
  done
}
