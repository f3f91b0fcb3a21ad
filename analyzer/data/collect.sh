#!/bin/sh
# Takes what `kubeodds` asks of a node: rules with counters, connections, addresses, and what ran.
#
#   sudo sh collect.sh [FILE]      FILE is a tar.gz; - is stdout; default: a name of node and time
#
# It changes nothing on the node, but that a kernel may load nf_tables when nft asks it. Each command
# has a time limit, and all of them together a limit of time and of bytes; what is missing, failed
# or was too slow is named in the bundle's MANIFEST.
# The bundle holds addresses, connections and, where the API answers, objects with pod specs: it is
# readable by its owner only.
#
# Theory of operation: everything is in functions, and the last line calls them, so a script that
# is cut off on its way does nothing, and no command can eat a script that comes by stdin. Commands
# run in the background, so that a signal is heard at once; a watcher kills one that is too slow.
# shellcheck disable=SC2317  # traps and `take` call functions by name
set -u
umask 077
version=unknown
# Seconds: between two looks at the counters (0: one look), for a command, and for all of them.
twice=0
limit=20
limit_of_all=300
# A secret, in hexadecimal: names are hashed with it (empty: they are not).
salt=''
# Of 512 bytes: for one file, and for all of them.
most=262144
most_of_all=1048576

PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
tab=$(printf '\t')
tmp='' unfinished='' running='' watcher='' saved=''

say() { printf 'kubeodds collect: %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# Sets `process_id` to that of this very process; in a subshell $$ is the script's.
look_at_process() {
    process_id=''
    read -r process_id _ 2>/dev/null </proc/self/stat || :
}

cleanup() {
    # A bash that has just been forked may still do what its parent's traps say.
    look_at_process
    [ "$process_id" = "$main_process" ] || return 0
    trap '' HUP INT PIPE TERM
    [ -z "$running" ] || kill -9 "$running" 2>/dev/null
    [ -z "$watcher" ] || kill -USR1 "$watcher" 2>/dev/null
    wait 2>/dev/null # for what still writes to the folder
    [ -z "$tmp" ] || rm -rf "$tmp"
    [ -z "$unfinished" ] || rm -f "$unfinished"
}

# Sets `now`, in hundredths of a second since the node's start: the clock may be set meanwhile.
look_at_clock() {
    now=0
    read -r now _ 2>/dev/null </proc/uptime || :
    now=${now%.*}${now#*.}
    now=${now#"${now%%[!0]*}"}
    case ${now:-0} in
    *[!0-9]*) now=0 ;;
    esac
    now=${now:-0}
}

seconds() { printf '%d.%02d' "$(($1 / 100))" "$(($1 % 100))"; }

# note FILE STATUS BEGUN TOOK BYTES SAYS COMMAND...: a line of MANIFEST
note() {
    note_begin="$1$tab$2$tab$(seconds "$3")$tab$(seconds "$4")$tab$5$tab$6"
    shift 6
    [ -z "$salt" ] || set -- "$1" # its words may be names
    # A process names its files itself: no tab or end of line of it is one of ours.
    printf '%s\t%s\n' "$note_begin" "$(printf '%s' "$*" | tr '\t\n' '??')" >>"$top/MANIFEST"
}

has() { command -v "$1" >/dev/null 2>&1; }

# Sets `program` to the file of a command; empty: it is a function. A busybox of the node's may have
# an `ip` of its own in it, which knows less than the one that is installed.
find_program() {
    program=''
    old_ifs=$IFS
    IFS=:
    for directory in $PATH; do
        if [ -z "$program" ] && [ -f "$directory/$1" ] && [ -x "$directory/$1" ]; then
            program=$directory/$1
        fi
    done
    IFS=$old_ifs
}

# left_out FILE WHY COMMAND...
left_out() {
    look_at_clock
    left_name=$1 left_why=$2
    shift 2
    note "$left_name" - "$((now - start))" 0 0 "$left_why" "$@"
}

# take FILE COMMAND...: the command's output as FILE. The status is the command's, and its
# complaints are in FILE.err; what is not whole is called FILE.part.
take() {
    name=$1
    shift
    if [ -n "$salt" ] && ! has_no_names "$name"; then
        left_out "$name" 'left out: names may be in it' "$@"
        return 1
    fi
    if ! has "$1"; then
        left_out "$name" 'not installed' "$@"
        return 127
    fi
    look_at_clock
    begun=$now
    blocks=$((most_of_all - used))
    [ "$blocks" -le "$most" ] || blocks=$most
    allowed=$((limit_of_all - (begun - start) / 100))
    [ "$allowed" -le "$limit" ] || allowed=$limit
    if [ "$allowed" -le 0 ]; then
        left_out "$name" 'left out: no time left' "$@"
        return 1
    elif [ "$blocks" -le 0 ]; then
        left_out "$name" 'left out: no room left' "$@"
        return 1
    fi
    (
        # shellcheck disable=SC3045  # tried first: in dash a bad option ends the shell
        (ulimit -c 0) 2>/dev/null && ulimit -c 0
        (ulimit -f "$blocks") 2>/dev/null && ulimit -f "$blocks"
        find_program "$1"
        if [ -z "$program" ]; then
            "$@"
            exit
        fi
        shift
        exec "$program" "$@" # so that to kill this is to kill the program
    ) </dev/null >"$top/$name" 2>"$top/$name.err" 3>&- &
    running=$!
    watch "$running"
    wait "$running" 2>/dev/null
    status=$?
    running=''
    kill -USR1 "$watcher" 2>/dev/null
    wait "$watcher" 2>/dev/null
    watcher=''
    look_at_clock
    bytes=$(wc -c <"$top/$name")
    bytes=$((bytes))
    used=$((used + (bytes + 511) / 512))
    says=ok
    if [ -e "$tmp/late" ]; then
        rm -f "$tmp/late"
        says='timed out'
    elif [ "$status" -ne 0 ] && [ "$bytes" -ge "$((blocks * 512))" ]; then
        says='too large'
    elif [ "$status" -ne 0 ]; then
        says=failed
    fi
    if [ -n "$salt" ] && [ "$says" = ok ] && ! digested "$name"; then
        say "$name: not understood, and so not taken"
        says=failed status=1
    fi
    if [ -n "$salt" ] || [ ! -s "$top/$name.err" ]; then
        rm -f "$top/$name.err"
    fi
    if [ "$says" != ok ] && [ "$bytes" -gt 0 ] && [ -z "$salt" ]; then
        mv "$top/$name" "$top/$name.part"
    elif [ "$says" != ok ]; then
        rm -f "$top/$name"
    fi
    note "$name" "$status" "$((begun - start))" "$((now - begun))" "$bytes" "$says" "$@"
    return "$status"
}

# Kill a process after the limit, unless this is told (USR1, which the script does not trap) that it
# has ended.
watch() {
    (
        # Before it has a child of its own, $! is the process that is watched.
        trap '[ "$!" = "$1" ] || kill "$!"; exit 0' USR1
        sleep "$allowed" &
        wait "$!"
        : >"$tmp/late"
        kill -9 "$1"
    ) </dev/null >/dev/null 2>&1 3>&- &
    watcher=$!
}

# copy FILE PATH...: files of the kernel or of the node, those that there are
copy() {
    copy_name=$1
    shift
    for path; do
        [ -r "$path" ] || continue
        take "$copy_name" cat "$@"
        return
    done
    left_out "$copy_name" 'not there' cat "$@"
}

# headed PATH...: each file below its name
headed() {
    for path; do
        if [ -r "$path" ] && [ -f "$path" ]; then
            printf '== %s\n' "$path"
            cat "$path"
        fi
    done
    true
}

# --- names ---------------------------------------------------------------------

# Where there is a salt names leave the node hashed. Each word of a rule is kept only if it is known
# to be netfilter's or kube-proxy's own; all others are hashed, and so are the hashes in the names of
# chains, which can be told from names. Files of which that is not known are not taken.

# has_no_names FILE: whether a file may be taken where there is a salt
has_no_names() {
    case ${1#again/} in
    ip*tables-*-save.txt | nft-list-ruleset.txt | addresses.json | routes*.json) ;;
    neighbours.json | conntrack* | sysctl.txt | clock.txt | uptime.txt | modules.txt) ;;
    version-*.txt | kube-proxy-metrics.txt) ;;
    *) return 1 ;;
    esac
}

# digested FILE: hash the names in a file that was taken
digested() {
    case ${1#again/} in
    ip*tables-*-save.txt) form=rules ;;
    nft-list-ruleset.txt) form=nft ;;
    *.json) form=json ;;
    *) return 0 ;;
    esac
    words=$tmp/words
    rm -rf "$words" "$tmp/list" "$tmp/map" "$tmp/new"
    mkdir "$words" || return 1
    : >"$tmp/map"
    rewrite "$form" 1 <"$top/$1" >"$tmp/list" || return 1
    # A file for each word, so that one process hashes them all.
    number=100000000
    while IFS= read -r word; do
        number=$((number + 1))
        printf '%s %s' "$salt" "$word" >"$words/$number"
    done <"$tmp/list"
    if [ -s "$tmp/list" ]; then
        (cd "$words" && find . -type f -exec sha256sum {} +) | sort -k 2 | cut -c 1-40 |
            paste - "$tmp/list" >"$tmp/map" || return 1
    fi
    rewrite "$form" 0 <"$top/$1" >"$tmp/new" && mv "$tmp/new" "$top/$1"
}

# rewrite FORM LISTS: print the words that are to be hashed, or the file with their hashes
rewrite() {
    awk -v form="$1" -v lists="$2" -v map="$tmp/map" -v saved="$saved" '
    function hash(word) {
        if (!lists) return known[word]
        if (!(word in seen)) { seen[word] = 1; print word }
        return word
    }
    function letters(word, count,    hex, out, i) {
        hex = hash(word)
        if (lists) return ""
        for (i = 1; i <= count; i++)
            out = out substr("ABCDEFGHIJKLMNOP", index("0123456789abcdef", substr(hex, i, 1)), 1)
        return out
    }
    function name(kind, word) { return kind "-" tolower(letters(kind " " word, 10)) }
    function service(word,    parts, rest, space) {
        split(word, parts, "/")
        space = parts[1]
        split(parts[2], rest, ":")
        return called(space, rest[1], rest[2], parts[2] ~ /:/ ? ":" : "")
    }
    function called(space, one, port, colon,    common, out) {
        common = (space == "default" && one == "kubernetes") || (space == "kube-system" && one == "kube-dns")
        out = (space in spaces ? space : name("ns", space)) "/" (common ? one : name("svc", one)) colon
        return out (port == "" ? "" : common && port in ports ? port : name("p", port))
    }
    function chain(word) {
        if (word in fixed) return word
        if (word ~ /^KUBE-(SVC|SVL|SEP|FW|XLB|EXT)-[A-Z2-7]+$/) {
            match(word, /^KUBE-[A-Z]+-/)
            return substr(word, 1, RLENGTH) letters("chain " substr(word, RLENGTH + 1), 16)
        }
        if (match(word, /^(cali-|KUBE-|CNI-|DOCKER-|FLANNEL-|AWS-|CILIUM_|ISTIO_|ufw6?-)/))
            return substr(word, 1, RLENGTH) letters("chain " word, 12)
        return "CHAIN-" letters("chain " word, 12)
    }
    function device(word) {
        if (match(word, /^(cali|veth|lxc|eni|azv|tap|gke|vnet)/) && length(word) > RLENGTH + 1)
            return substr(word, 1, RLENGTH) tolower(letters("device " word, 9))
        if (word ~ /^(lo|(eth|ens|eno|bond|br|cni|cbr|docker|flannel\.|tunl|wg|tun|virbr|vxlan)[0-9.]*|(cali|veth|lxc|eni|azv|gke)\+|kube-ipvs0|kube-bridge|vxlan.calico|nodelocaldns)$/)
            return word
        return "if" tolower(letters("device " word, 8)) (word ~ /\+$/ ? "+" : "")
    }
    function number(word) {
        return word ~ /^[0-9][0-9a-fA-F:.\/,x-]*$/ || word ~ /^[0-9a-f]*:[0-9a-f:.\/]*$/ || word ~ /^\[[0-9a-f:.]+\]:[0-9-]+$/ || word ~ /^[0-9]+\/(sec|min|minute|hour|day|second)$/
    }
    function comment(text,    parts, count, i, out, word) {
        count = split(text, parts, " ")
        for (i = 1; i <= count; i++) {
            word = parts[i]
            if (number(word)) out = out " " word
            else if (word ~ /^[^\/]+\/[^\/]+$/ && word != "/") out = out " " service(word)
            else if (word ~ /^KUBE-/) out = out " " chain(word)
            else out = out " " (word in says ? word : "-")
        }
        return substr(out, 2)
    }
    function value(option, word) {
        if (option == "-A") return chain(word)
        if (option == "-j" || option == "-g") return word in declared || word !~ /^[A-Z0-9]+$/ ? chain(word) : word
        if (option == "--comment") return comment(word)
        if (option == "--name") return word ~ /^KUBE-/ ? chain(word) : word == "DEFAULT" ? word : name("list", word)
        if (option == "-i" || option == "-o" || option ~ /^--physdev-/) return device(word)
        if (number(word) || word in values) return word
        if (option ~ /^--(ctstate|state|ctstatus|dst-type|src-type|tcp-flags|ctdir)$/ && word ~ /^[A-Z_]+(,[A-Z_]+)*$/) return word
        if (option == "--reject-with" && word ~ /^(icmp6?|tcp)-[a-z-]+$/) return word
        if (option ~ /-set$/ && word ~ /^(src|dst)(,(src|dst))*$/) return word
        if (option == "--nfacct-name" && word ~ /^(ct_state_invalid_dropped_pkts|localhost_nps_accepted_pkts)$/) return word
        return name("word", word)
    }
    function rule(line,    out, option, word) {
        while (match(line, /^ *("([^"\\]|\\.)*"|[^ "]+)/)) {
            word = substr(line, 1, RLENGTH)
            line = substr(line, RLENGTH + 1)
            sub(/^ */, "", word)
            if (word ~ /^"/) word = "\"" (option == "--comment" ? comment(substr(word, 2, length(word) - 2)) : name("text", word)) "\""
            else if (word ~ /^--?[a-zA-Z0-9-]+$/) option = word
            else if (word ~ /^\[[0-9]+:[0-9]+\]$/ || word == "!") word = word
            else word = value(option, word)
            out = out " " word
        }
        if (line !~ /^ *$/) bad = 1
        return substr(out, 2)
    }
    function nft_name(word,    at, kind, path, parts, tail) {
        match(word, /^[a-z]+-/)
        kind = substr(word, 1, RLENGTH)
        path = substr(word, RLENGTH + 10)
        at = index(path, "__")
        tail = at ? substr(path, at) : ""
        if (split(at ? substr(path, 1, at - 1) : path, parts, "/") != 4 || tail !~ /^(__[0-9a-f.]+\/[0-9]+)?$/) bad = 1
        split(called(parts[1], parts[2], parts[4], ":"), path_parts, /[\/:]/)
        return kind letters("chain " word, 8) "-" path_parts[1] "/" path_parts[2] "/" parts[3] "/" path_parts[3] tail
    }
    function nft(line,    out, word) {
        while (match(line, /"[^"]*"|[^ \t,;{}()"]+/)) {
            word = substr(line, RSTART, RLENGTH)
            out = out substr(line, 1, RSTART - 1)
            line = substr(line, RSTART + RLENGTH)
            if (word ~ /^"/) word = "\"" comment(substr(word, 2, length(word) - 2)) "\""
            else if (word ~ /^@?(service|external|firewall|local|endpoint|affinity)-[A-Z2-7]+-.*\//)
                word = word ~ /^@/ ? "@" nft_name(substr(word, 2)) : nft_name(word)
            else if (word ~ /\// && !number(word)) bad = 1
            out = out word
        }
        return out line
    }
    function json(line,    parts, count, i, out) {
        count = split(line, parts, "\"")
        for (i = 1; i <= count; i++) {
            if (i % 2 == 0 && (last == "ifname" || last == "dev" || last == "link" || last == "master" || last == "label"))
                parts[i] = device(parts[i])
            else if (i % 2 == 0 && last == "ifalias") parts[i] = ""
            if (i % 2 == 0) last = parts[i + 1] ~ /^:/ ? parts[i] : ""
            else if (parts[i] !~ /^:$/) last = ""
            out = out (i > 1 ? "\"" : "") parts[i]
        }
        return out
    }
    function words(text, into,    parts, count, i) {
        count = split(text, parts, " ")
        for (i = 1; i <= count; i++) into[parts[i]] = 1
    }
    BEGIN {
        while (!lists && (getline line < map) > 0) known[substr(line, 42)] = substr(line, 1, 40)
        words("default kube-system kube-public kube-node-lease", spaces)
        words("https dns dns-tcp metrics", ports)
        words("PREROUTING INPUT FORWARD OUTPUT POSTROUTING KUBE-SERVICES KUBE-NODEPORTS KUBE-EXTERNAL-SERVICES KUBE-FORWARD KUBE-POSTROUTING KUBE-MARK-MASQ KUBE-MARK-DROP KUBE-FIREWALL KUBE-PROXY-FIREWALL KUBE-PROXY-CANARY KUBE-KUBELET-CANARY KUBE-IPTABLES-HINT KUBE-HOSTPORTS", fixed)
        words("tcp udp sctp icmp icmp6 icmpv6 ipv6-icmp all comment conntrack statistic mark addrtype recent multiport state set physdev nfacct limit connmark rpfilter socket owner random nth LOCAL NEW", values)
        words("kubernetes service portals externally-visible forwarding rules rule conntrack pod source destination cluster IP external loadbalancer has no endpoints local health check node port ports postrouting requiring SNAT traffic masquerade LOCAL for destinations route to chain LB other will be dropped by firewall load balancer not accepted Balancing block incoming localnet connections nodeports; NOTE: this must the last in be dropping marked packets Redirect pods trying reach VIP clusterIP -> Active ClusterIPs ClusterIP, ExternalIP and LoadBalancer Drop unallocated IPs that accept NodePort Reject invalid of destinations are subject LoadBalancerSourceRanges helper @no-endpoint-services / @no-endpoint-nodeports from outside hairpin short-circuit vmap drop or reject packets services nodeports with kube-proxy flanneld masq forward NodeLocal DNS Cache: skip allow", says)
    }
    form == "json" { line = json($0); if (!lists) print line; next }
    form == "rules" && /^:/ {
        split(substr($0, 2), part, " ")
        declared[part[1]] = 1
        line = ":" chain(part[1]) " " part[2] " " part[3]
        if (part[2] !~ /^(ACCEPT|DROP|-)$/ || part[3] !~ /^\[[0-9]+:[0-9]+\]$/) bad = 1
        if (!lists) print line
        next
    }
    form == "rules" && /^(\[[0-9]+:[0-9]+\] )?-A / { line = rule($0); if (!lists) print line; next }
    form == "rules" && (/^\*(nat|filter|mangle|raw|security)$/ || /^COMMIT$/ || /^$/) { if (!lists) print; next }
    form == "rules" && /^# (Generated by ip6?tables|Completed on )/ { if (!lists) print; next }
    form == "rules" && /^# Warning: ip6?tables-legacy tables present/ { if (!lists) print; next }
    form == "nft" && /^table / {
        own = $3 == "kube-proxy"
        # Rules of iptables-nft are in what iptables-nft-save prints.
        if (!own && !(saved && $2 ~ /^ip6?$/ && $3 ~ /^(nat|filter|mangle|raw|security)$/)) bad = 1
    }
    form == "nft" && own { line = nft($0); if (!lists) print line; next }
    form == "nft" { next }
    { bad = 1 }
    END { exit bad ? 3 : 0 }
    '
}

# --- what is taken -----------------------------------------------------------

# backend_of PROGRAM: nft or legacy. Before 1.8 there was legacy only, and no word of it.
backend_of() {
    case $("$1" -V 2>/dev/null </dev/null) in
    *nf_tables*) echo nft ;;
    *) echo legacy ;;
    esac
}

# tables FOLDER ip[6]tables
tables() {
    for backend in legacy nft; do
        file=$1$2-$backend-save.txt
        if has "$2-$backend-save"; then
            take "$file" "$2-$backend-save" -c
        elif has "xtables-$backend-multi"; then
            take "$file" "xtables-$backend-multi" "$2-save" -c
        elif has "$2-save" && has "$2" && [ "$(backend_of "$2")" = "$backend" ]; then
            take "$file" "$2-save" -c
        else
            left_out "$file" 'not installed' "$2-$backend-save" -c
        fi
    done
}

rules() {
    tables "$1" iptables
    tables "$1" ip6tables
    saved=''
    [ ! -e "$top/$1iptables-nft-save.txt" ] || saved=1
    take "$1nft-list-ruleset.txt" nft list ruleset
}

connections() {
    # To ask would load conntrack into a kernel that is without.
    if [ ! -e /proc/sys/net/netfilter/nf_conntrack_max ]; then
        left_out "$1conntrack.txt" 'left out: the kernel tracks no connections' conntrack -L
    elif has conntrack; then
        take "$1conntrack-ipv4.txt" conntrack -L -f ipv4 -o extended
        take "$1conntrack-ipv6.txt" conntrack -L -f ipv6 -o extended
    else
        copy "$1conntrack.txt" /proc/net/nf_conntrack
    fi
    copy "$1conntrack-count.txt" /proc/sys/net/netfilter/nf_conntrack_count
    copy "$1conntrack-stat.txt" /proc/net/stat/nf_conntrack
}

network() {
    take addresses.json ip -j address
    take addresses.txt ip address
    take links.txt ip -s link
    take routes.json ip -j route
    take routes6.json ip -j -6 route
    take routes.txt ip route show table all
    take routes6.txt ip -6 route show table all
    take routing-rules.txt ip rule
    take routing-rules6.txt ip -6 rule
    take neighbours.json ip -j neighbour
    take neighbours.txt ip neighbour
    # ipset and ipvsadm load modules where there are none.
    if [ -e /sys/module/ip_set ]; then
        take ipset-save.txt ipset save
    else
        left_out ipset-save.txt 'left out: the kernel has no sets of ipset' ipset save
    fi
    if [ -e /proc/net/ip_vs ]; then
        take ipvsadm.txt ipvsadm -S -n
        copy ip_vs.txt /proc/net/ip_vs
    else
        left_out ipvsadm.txt 'left out: the kernel has no ipvs' ipvsadm -S -n
    fi
    take xt_recent.txt headed /proc/net/xt_recent/*
    copy resolv.conf /etc/resolv.conf
    take sysctl.txt headed /proc/sys/net/netfilter/nf_conntrack_* \
        /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_local_port_range \
        /proc/sys/net/ipv4/conf/all/route_localnet /proc/sys/net/ipv6/conf/all/forwarding \
        /proc/sys/net/bridge/bridge-nf-call-*tables
}

machine() {
    take clock.txt date -u '+%Y-%m-%dT%H:%M:%SZ %s'
    copy uptime.txt /proc/uptime
    take kernel.txt uname -a
    copy modules.txt /proc/modules
    copy os-release.txt /etc/os-release
    take version-iptables.txt iptables -V
    take version-nft.txt nft --version
    take version-conntrack.txt conntrack -V
    take version-ip.txt ip -V
    take version-kubelet.txt kubelet --version
}

arguments_of() { tr '\000' '\n' <"/proc/$1/cmdline"; }

kube_proxy() {
    found=0
    for process in /proc/[0-9]*; do
        comm=''
        { read -r comm <"$process/comm"; } 2>/dev/null || :
        [ "$comm" = kube-proxy ] || continue
        found=$((found + 1))
        [ "$found" -le 4 ] || continue
        process=${process#/proc/}
        take "kube-proxy-$process-arguments.txt" arguments_of "$process"
        configured "$process"
    done
    [ "$found" -gt 0 ] || left_out kube-proxy-arguments.txt 'no process kube-proxy' cat
}

# When kube-proxy last wrote its rules; it listens on the node itself only, unless told otherwise.
metrics() {
    address=http://127.0.0.1:10249/metrics
    if [ "$found" -eq 0 ]; then
        left_out kube-proxy-metrics.txt 'no process kube-proxy' curl "$address"
    elif has curl; then
        take kube-proxy-metrics.txt curl -sf --noproxy '*' --max-time 5 "$address"
    else
        take kube-proxy-metrics.txt wget -q -Y off -T 5 -O - "$address"
    fi
}

# configured PID: the file of --config, as the process sees it
configured() {
    config='' next=''
    while IFS= read -r word; do
        case $next$word in
        --config=*) config=${word#--config=} next='' ;;
        --config) next=value: ;;
        value:*) config=$word next='' ;;
        esac
    done <<END
$(arguments_of "$1" 2>/dev/null)
END
    [ -n "$config" ] || return 0
    # Any process may call itself kube-proxy, and name a file that is nobody's business.
    if [ -f "/proc/$1/root/$config" ] &&
        grep -q '^kind: *KubeProxyConfiguration' "/proc/$1/root/$config" 2>/dev/null; then
        copy "kube-proxy-$1-config.txt" "/proc/$1/root/$config"
    else
        left_out "kube-proxy-$1-config.txt" 'no configuration of kube-proxy' cat "$config"
    fi
}

objects() {
    if [ -n "$salt" ]; then
        left_out objects.json 'left out: names may be in it' kubectl
        return
    fi
    if ! has kubectl; then
        left_out objects.json 'not installed' kubectl get
        return
    fi
    if [ -z "${KUBECONFIG:-}${KUBERNETES_SERVICE_HOST:-}" ] &&
        [ ! -e "${HOME:-/root}/.kube/config" ]; then
        for config in /etc/kubernetes/admin.conf /etc/rancher/k3s/k3s.yaml \
            /etc/kubernetes/kubelet.conf /var/lib/kubelet/kubeconfig; do
            [ -r "$config" ] || continue
            KUBECONFIG=$config
            export KUBECONFIG
            break
        done
        if [ -z "${KUBECONFIG:-}" ]; then # kubectl would ask any server at port 8080
            left_out objects.json 'left out: no kubeconfig' kubectl get
            return
        fi
    fi
    of_others=$limit
    [ "$limit" -le 5 ] || limit=5
    # Its cache is ours to take away again.
    take api-version.json kubectl --cache-dir="$tmp/cache" --request-timeout=5s get --raw /version
    answered=$?
    limit=$of_others
    if [ "$answered" -ne 0 ]; then
        left_out objects.json 'left out: the API does not answer' kubectl get
        return
    fi
    set -- --cache-dir="$tmp/cache" --request-timeout="${limit}s" get --all-namespaces -o json
    take objects.json kubectl "$@" services,endpointslices,nodes,pods && return
    # An API without EndpointSlices says so before it prints anything.
    [ -e "$top/objects.json.part" ] || take objects.json kubectl "$@" services,endpoints,nodes,pods
}

# --- the bundle --------------------------------------------------------------

main() {
    [ "$#" -le 1 ] || die 'usage: sh collect.sh [FILE]'
    for needed in cat date grep mkdir mv rm sleep tar tr uname wc; do
        has "$needed" || die "$needed is not installed"
    done
    pack=gzip suffix=tar.gz
    has gzip || pack=cat suffix=tar
    node=$(uname -n | tr -cd 'A-Za-z0-9._-')
    if [ -n "$salt" ]; then
        for needed in awk cut find paste sha256sum sort; do
            has "$needed" || die "$needed is not installed, and names cannot be hashed without it"
        done
        node=node-$(printf '%s node %s' "$salt" "$node" | sha256sum | cut -c 1-10)
    fi
    bundle=kubeodds-$node-$(date -u '+%Y%m%dT%H%M%SZ')
    out=${1:-$bundle.$suffix}
    look_at_process
    main_process=$process_id
    trap cleanup EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 141' PIPE
    trap 'exit 143' TERM
    if [ "$out" = - ]; then
        [ ! -t 1 ] || die 'stdout is a terminal; name a FILE'
        exec 3>&1
    else
        # Never through a link that somebody has put there, nor over what there is.
        (set -C && : >"$out") 2>/dev/null || die "$out: there already, or cannot be written"
        unfinished=$out
        exec 3>>"$out"
    fi
    # What commands print goes to files; only the bundle goes to stdout.
    exec >&2
    folder=${TMPDIR:-/tmp}/kubeodds.$$.$(date '+%H%M%S')
    mkdir "$folder" || die "$folder: cannot be made"
    tmp=$folder
    top=$tmp/$bundle
    mkdir "$top" || die "$top: cannot be made"
    [ "$(id -u 2>/dev/null)" = 0 ] || say 'not root: rules and connections will be missing'

    told_node=$node
    [ -n "$salt" ] || told_node=$(uname -n)
    used=0
    limit_of_all=$((limit_of_all + twice))
    look_at_clock
    start=$now
    {
        printf '# kubeodds collect %s, format 1\n' "$version"
        printf '# node %s, begun %s\n' "$told_node" "$(date -u '+%Y-%m-%dT%H:%M:%SZ')"
        printf '# file\tstatus\tbegun (s)\ttook (s)\tbytes\tresult\tcommand\n'
    } >"$top/MANIFEST"
    rules ''
    connections ''
    if [ "$twice" -gt 0 ]; then
        mkdir "$top/again"
        sleep "$twice" 3>&- &
        running=$!
        wait "$running"
        running=''
        rules again/
        connections again/
    fi
    [ -n "$salt" ] || take nft-list-ruleset.json nft -j list ruleset
    network
    machine
    kube_proxy
    metrics
    objects

    cd "$tmp" || die "$tmp: cannot be entered"
    { tar cf - "$bundle" || : >"$tmp/failed"; } | "$pack" >&3 || : >"$tmp/failed"
    [ ! -e "$tmp/failed" ] || die "$out: cannot be written"
    exec 3>&-
    unfinished=''
    [ "$out" = - ] || say "wrote $out"
    grep -c "${tab}ok$tab" "$bundle/MANIFEST" >"$tmp/count"
    read -r count <"$tmp/count"
    say "$count files; MANIFEST in it names what is missing"
    exit 0
}

main "$@"
exit
